// The bot, whose searches a worker makes, one after the other.

// Returns the bot with the model of a `version`, of model.json.
//   about                                    Promise<{game, simulationsPerSecond}>
//   search(state, limits, onProgress)        {result: Promise of a result of search.js, stop()}: stop() ends it with what it has found
//   end()                                    ends the worker once all of its searches are made
export function startBot(version) {
  const worker = new Worker(`${new URL("worker.js", import.meta.url)}#${version}`, { type: "module" });
  const waiting = new Map(); // id -> {resolve, reject, onProgress}
  let last = 0, isEnding = false, problem = null;

  worker.onmessage = ({ data }) => {
    const { id, kind, message } = data, asked = waiting.get(id);
    if (kind === "progress") return asked.onProgress(data.result);
    waiting.delete(id);
    if (isEnding && !waiting.size) worker.terminate();
    return kind === "error" ? asked.reject(new Error(message)) : asked.resolve(data);
  };
  worker.onerror = (event) => {
    event.preventDefault(); // what is shown on the page need not be logged
    const why = (event.message || "its worker cannot be loaded").replace(/\.$/, ""); // some browsers end it with a full stop
    problem = new Error(`The bot cannot run in this browser: ${why}.`);
    for (const { reject } of waiting.values()) reject(problem);
    waiting.clear();
  };

  function ask(fields, onProgress = () => undefined) {
    if (problem) return { answer: Promise.reject(problem) };
    last += 1;
    const id = last;
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject, onProgress }));
    worker.postMessage({ id, ...fields });
    return { id, answer };
  }

  function search(state, limits, onProgress) {
    const { id, answer } = ask({ kind: "search", state, ...limits }, onProgress);
    return { result: answer.then(({ result }) => result), stop: () => worker.postMessage({ kind: "stop", search: id }) };
  }

  function end() {
    isEnding = true;
    if (!waiting.size) worker.terminate();
  }

  return { about: ask({ kind: "about" }).answer, search, end };
}
