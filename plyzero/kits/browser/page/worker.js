// The bot, in a worker of its own: it loads rules.wasm, game.json and model.onnx, which lie beside it, and answers messages.
// What follows # in its address is the version of the model, of model.json.
//
//   {id, kind: "about"}                             {id, kind: "about", game, simulationsPerSecond}
//   {id, kind: "search", state, simulations,        {id, kind: "progress", result} now and then, at the end
//     seconds?, shortWins?}                         {id, kind: "result", result, isStopped}
//   {kind: "stop", search: id}                      none; that search ends with what it has found
//
// `result` is what search.js returns. If anything fails, the answer is {id, kind: "error", message}. Searches are made one
// after the other; `seconds` counts from the start of the search. shortWins: whether wins of a few plies are looked for then.

import * as ort from "./ort.wasm.min.mjs";

import { loadNetwork } from "./evaluator.js";
import { loadRules } from "./wasm.js";
import { resultOf, search } from "./search.js";
import { withShortWin } from "./short_wins.js";

const LEAVES = 8;  // of a search in a batch, at most one in LEAST_BATCHES of its simulations
const LEAST_BATCHES = 16;
const MOST_SIMULATIONS = 1e6;
const MEASURED = 64;  // simulations that measure the speed
const TURN_MS = 20;  // after which a search looks for messages
const PROGRESS_MS = 200;

const stopped = new Set();
const ready = load();
ready.catch(() => undefined);  // each answer says what is wrong
let last = ready;

self.addEventListener("message", ({ data }) => {
  if (data.kind === "stop") stopped.add(data.search);
  else last = last.then(() => answer(data), () => answer(data));
});

async function answer(message) {
  const { id } = message;
  try {
    const bot = await ready;
    if (message.kind === "about") self.postMessage({ id, kind: "about", game: bot.rules.game, simulationsPerSecond: bot.simulationsPerSecond });
    else if (message.kind === "search") self.postMessage({ id, kind: "result", result: await searched(bot, message), isStopped: stopped.delete(id) });
    else throw new Error(`Expected a message about, search or stop, got ${message.kind}.`);
  } catch (error) {
    stopped.delete(id);
    self.postMessage({ id, kind: "error", message: error.message });
  }
}

// Loads the bot and measures its speed.
async function load() {
  const at = (name) => new URL(name, import.meta.url), version = new URL(import.meta.url).hash.slice(1);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = at("./").href;
  const [game, code, model] = await Promise.all([
    fetched(at("game.json"), (response) => response.json()),
    fetched(at("rules.wasm"), (response) => response.arrayBuffer()),
    fetched(at(`model.onnx${version && `?version=${version}`}`), (response) => response.arrayBuffer()),
  ]);
  const rules = await loadRules(code, game), evaluate = await loadNetwork(ort, new Uint8Array(model), game);
  const limits = { simulations: MEASURED, leaves: leavesOf(MEASURED), ...game.search }, state = firstDecision(rules);
  await search(rules, state, evaluate, limits);  // what follows is faster
  const began = performance.now();
  const { simulations } = await search(rules, state, evaluate, limits);
  return { rules, evaluate, simulationsPerSecond: (1000 * Math.max(1, simulations)) / Math.max(1, performance.now() - began) };
}

async function fetched(address, read) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address.pathname} cannot be loaded: ${response.status} ${response.statusText}`);
  return read(response);
}

// Returns the first position at which a player moves, with the first possible roll of each chance.
function firstDecision(rules) {
  let state = rules.start, weights = rules.chances(state);
  while (weights) {
    state = rules.play(state, weights.findIndex((weight) => weight > 0));
    weights = rules.chances(state);
  }
  return state;
}

const leavesOf = (simulations) => Math.max(1, Math.min(LEAVES, Math.floor(simulations / LEAST_BATCHES)));

async function searched({ rules, evaluate }, { id, state, simulations = MOST_SIMULATIONS, seconds = Infinity, shortWins = false }) {
  const end = performance.now() + 1000 * seconds;
  let turned = performance.now(), shown = turned;

  async function onBatch(tree) {
    if (performance.now() >= turned + TURN_MS) {
      await nextTask();
      turned = performance.now();
    }
    if (performance.now() >= shown + PROGRESS_MS) {
      self.postMessage({ id, kind: "progress", result: resultOf(tree) });
      shown = performance.now();
    }
    return stopped.has(id) || performance.now() >= end;
  }

  const result = await search(rules, Uint8Array.from(state), evaluate, { ...rules.game.search, simulations, leaves: leavesOf(simulations), onBatch });
  return shortWins ? withShortWin(rules, Uint8Array.from(state), result) : result;
}

// Waits until other messages have been read: WebAssembly computes without a pause.
function nextTask() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
