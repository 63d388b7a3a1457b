// Loads a module of rules and calls some of its rules. Reads {page, game, rules, calls: [[name, ...arguments]]} from standard
// input; writes {values}, or {error} with the message of what was thrown.

import { readFileSync } from "node:fs";

const { page, game, rules, calls } = JSON.parse(readFileSync(0, "utf8"));
const { loadRules } = await import(`${page}/wasm.js`);
try {
  const found = await loadRules(Buffer.from(rules, "base64"), game);
  const values = calls.map(([name, state, ...rest]) => found[name](Uint8Array.from(state), ...rest));
  process.stdout.write(JSON.stringify({ values: values.map((value) => (ArrayBuffer.isView(value) ? Array.from(value) : value)) }));
} catch (error) {
  process.stdout.write(JSON.stringify({ error: error.message }));
}
