// Answers for positions of a game as the page does. Reads one JSON object from standard input, {page, asked}, where `asked` are
// {path, fields}; game.json and rules.wasm lie in `page`. Writes the answers of static/api.js, or {error}, to standard output.
// A worker answers with `results`, the results of searches; model.json is each time the next one of `models`, if there are any.
// speed: its simulations a second. failure: what its error says, if it cannot be loaded.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const { page, asked, results = [], models = [], speed = 1000, failure } = JSON.parse(readFileSync(0, "utf8"));

globalThis.fetch = async (address) => {
  const { origin, pathname } = new URL(address), bytes = readFileSync(fileURLToPath(`file://${pathname}`));
  if (origin !== "null") throw new Error(`${address} is elsewhere`);
  if (models.length && pathname.endsWith("model.json")) return { ok: true, json: async () => models.shift() };
  return { ok: true, json: async () => JSON.parse(bytes), arrayBuffer: async () => bytes };
};

globalThis.navigator ??= {};

const started = [];

globalThis.Worker = class {
  constructor(address) {
    started.push(new URL(address).hash);
  }

  postMessage({ id, kind, state, simulations }) {
    if (kind === "stop") return;
    if (failure !== undefined) {
      setTimeout(() => this.onerror({ message: failure, preventDefault() {} }));
      return;
    }
    const answer = kind === "about" ? { simulationsPerSecond: speed } : { result: results.shift() ?? { state, simulations } };
    setTimeout(() => this.onmessage({ data: { id, kind, ...answer } }));
  }

  terminate() {
    started.push("end");
  }
};

const { get, stream } = await import(`${page}/static/api.js`);
const answers = [];
for (const { path, fields, isStream } of asked) {
  const answer = isStream ? new Promise((resolve, reject) => stream(path, fields, (event) => event.done && resolve(event), (text) => reject(new Error(text)))) : get(path, fields);
  answers.push(await answer.catch(({ message }) => ({ error: message })));
}
process.stdout.write(JSON.stringify({ answers, started }));
