// Searches positions with the modules of the page. Reads one JSON object from standard input and writes one to standard output.
// tests/helpers/node_search.py describes both.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const asked = JSON.parse(readFileSync(0, "utf8"));
const { loadRules } = await import(`${asked.page}/wasm.js`);
const { search } = await import(`${asked.page}/search.js`);
const rules = await loadRules(Buffer.from(asked.rules, "base64"), asked.game);
const evaluate = await evaluatorOf(asked.evaluator);
const began = performance.now(), cpu = process.cpuUsage();
const results = [];
let batches = 0, evaluations = 0;
for (const { state, ...options } of asked.searches) results.push(await search(rules, Uint8Array.from(state), counted, options));
const { user, system } = process.cpuUsage(cpu);
const usage = { seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6, batches, evaluations };
process.stdout.write(JSON.stringify({ results, usage }));

function counted(observations, count) {
  batches += 1;
  evaluations += count;
  return evaluate(observations, count);
}

async function evaluatorOf({ kind, runtime, model }) {
  if (kind === "uniform") return (_, count) => evaluated(count, () => 0, () => [0, 1, 0]);
  if (kind === "hashed") return hashed;
  if (kind === "broken") return (_, count) => evaluated(count, () => Number.NaN, () => [0, 1, 0]);
  const ort = await import(`${runtime}/ort.wasm.min.mjs`);
  ort.env.wasm.numThreads = 1;
  const { loadNetwork } = await import(`${asked.page}/evaluator.js`);
  return loadNetwork(ort, readFileSync(model), asked.game);
}

async function evaluated(count, logitOf, wdlOf) {
  const { actions } = asked.game;
  const logits = Float32Array.from({ length: count * actions }, (_, i) => logitOf(Math.floor(i / actions), i % actions));
  const wdl = Float32Array.from({ length: 3 * count }, (_, i) => wdlOf(Math.floor(i / 3))[i % 3]);
  return { logits, wdl };
}

// tests.helpers.toys.Hashed
function hashed(observations, count) {
  const rows = Array.from({ length: count }, (_, i) => digest(observations.subarray(i * rules.observationSize, (i + 1) * rules.observationSize)));
  const wdlOf = (i) => {
    const [win, draw, loss] = rows[i], total = win + draw + loss;
    return [win / total, draw / total, loss / total];
  };
  return evaluated(count, (i, action) => 4 * rows[i][3 + action] - 2, wdlOf);
}

function digest(numbers) {
  const bytes = createHash("shake128", { outputLength: 2 * (asked.game.actions + 3) }).update(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)).digest();
  return Array.from({ length: bytes.length / 2 }, (_, i) => (bytes.readUInt16LE(2 * i) + 1) / 65536);
}
