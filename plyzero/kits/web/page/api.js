// What the server is asked. Every request brings the moves of the game; the server keeps only games in two places.

export const LOST = "lost"; // the cause of an error if no plyzero server has answered

const LONGEST = 400000; // address, in characters: the server takes no longer one

// Throws an Error with a sentence if the game is too long.
function addressOf(path, fields) {
  const address = `api/${path}?${new URLSearchParams(fields)}`;
  if (address.length > LONGEST) throw new Error(`The game is too long for this page: expected an address of at most ${LONGEST} characters, got ${address.length}.`);
  return address;
}

export const get = (path, fields) => ask("GET", path, fields);
export const post = (path, fields, body) => ask("POST", path, fields, body);

async function ask(method, path, fields = {}, body = null) {
  const address = addressOf(path, fields);
  let answer;
  try {
    answer = await fetch(address, { method, body });
  } catch {
    throw new Error("The server does not answer.", { cause: LOST });
  }
  const found = await answer.json().catch(() => {
    throw new Error(`What answers with ${answer.status} is not plyzero; is there a proxy between?`, { cause: LOST });
  });
  if (!answer.ok || found.error) throw new Error(found.error);
  return found;
}

// Calls onEvent with every event of a stream, such as a search, and onError with a sentence and, if the server has sent it, the
// event. Returns a function that ends the stream.
export function stream(path, fields, onEvent, onError) {
  let source;
  try {
    source = new EventSource(addressOf(path, fields));
  } catch (problem) {
    onError(problem.message);
    return () => {};
  }
  source.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.done) source.close();
    if (event.error) onError(event.error, event);
    else onEvent(event);
  };
  source.onerror = () => {
    source.close();
    get("about").then(() => onError("The server has ended the search."), (error) => onError(error.message));
  };
  return () => source.close();
}
