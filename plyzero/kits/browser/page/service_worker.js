// Keeps the files of the folder, whose names are in files.json, so that the page works without a network after the first visit.
// With a network its answers are those of the server, which replace what is kept.

const FOLDER = new URL("./", self.location);
const KEPT = `plyzero ${FOLDER.pathname}`; // the name of the cache; other folders of the server have others

self.addEventListener("install", (event) => event.waitUntil(keepAll().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(FOLDER.href)) event.respondWith(answerTo(event));
});

async function keepAll() {
  const names = await (await fetch(new URL("files.json", FOLDER))).json(), kept = await caches.open(KEPT);
  await kept.addAll(["./", "files.json", ...names].map((name) => new URL(name, FOLDER)));
}

async function answerTo(event) {
  const kept = await caches.open(KEPT), address = bare(event.request.url);
  try {
    const answer = await fetch(event.request);
    if (answer.ok) event.waitUntil(keep(kept, address, answer.clone()));
    return answer;
  } catch (problem) {
    const found = await kept.match(address);
    if (found) return found;
    throw problem;
  }
}

// Versions of a file have one address here, so that the newest one replaces the others.
function bare(url) {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

async function keep(kept, address, answer) {
  const before = await kept.match(address), stamps = ["etag", "last-modified", "content-length"];
  const isSame = before && stamps.every((name) => before.headers.get(name) === answer.headers.get(name)) && stamps.slice(0, 2).some((name) => answer.headers.has(name));
  if (!isSame) await kept.put(address, answer);
}
