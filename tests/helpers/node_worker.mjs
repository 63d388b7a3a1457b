// Runs the worker of the page. Reads one JSON object from standard input, {page, messages, stopAfterProgress}, sends the messages
// to the worker, and writes all of its answers to standard output as soon as each message has its last one. After the first
// progress of the search `stopAfterProgress` that search is stopped.

import { readFileSync } from "node:fs";

const { page, messages, stopAfterProgress } = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
let listen, isStopping = false, open = messages.length;

globalThis.fetch = async (address) => {
  try {
    const bytes = readFileSync(address);
    return { ok: true, json: async () => JSON.parse(bytes), arrayBuffer: async () => bytes };
  } catch {
    return { ok: false, status: 404, statusText: "Not Found" };
  }
};

globalThis.self = {
  addEventListener: (_, listener) => {
    listen = listener;
  },
  postMessage: (answer) => {
    answers.push(structuredClone(answer));
    if (answer.kind === "progress" && answer.id === stopAfterProgress && !isStopping) {
      isStopping = true;
      setTimeout(() => send({ kind: "stop", search: answer.id }));  // later, as from a page
    }
    if (answer.kind !== "progress") open -= 1;
    if (!open) process.stdout.write(JSON.stringify(answers));
  },
};

const send = (data) => listen({ data });
await import(`${page}/worker.js`);
messages.forEach(send);
