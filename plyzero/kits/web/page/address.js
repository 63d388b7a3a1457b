// The game that the page shows, as the part of its address behind #.

import { parseClock } from "./clock.js";

let known = null; // the address that was read or written last

// The state of the page is its address: moves, variations, comments by the moves before them, who plays, which position is
// shown, the text of the first one, the clock and the time that is left, the key of a game in two places, and names of players.
export function readAddress() {
  known = location.hash;
  const fields = new URLSearchParams(location.hash.slice(1));
  const split = (names) => names.split(" ").filter(Boolean), moves = split(fields.get("moves") ?? "");
  const at = Number(fields.get("at") ?? moves.length), resigned = ["0", "1"].indexOf(fields.get("resigned"));
  const clock = fields.get("clock") ?? "", left = /^\d{1,9}(\.\d+)? \d{1,9}(\.\d+)?$/.exec(fields.get("left") ?? "");
  return {
    moves,
    at: Number.isInteger(at) && at >= 0 && at < moves.length ? at : moves.length,
    first: fields.get("first") ?? "you",
    second: fields.get("second"),
    resigned: resigned < 0 ? null : resigned,
    timeOver: resigned >= 0 && fields.has("timeOver"),
    clock: parseClock(clock) ? clock : "",
    left: left && parseClock(clock) ? left[0].split(" ").map(Number) : null,
    shared: fields.get("shared") ?? "",
    step: fields.get("step") ?? "",
    start: fields.get("start") ?? "",
    names: fields.getAll("name"),
    lines: fields.getAll("line").map(split),
    notes: Object.fromEntries(fields.getAll("note").map((each) => each.split(/ \| (.*)/s, 2))),
  };
}

// isNew: as an entry of the browser's history, so that its Back button leads to what was shown before.
export function writeAddress({ moves, at, first, second, resigned, timeOver, step, start, lines, notes, clock, left, shared, names }, isNew) {
  if (location.hash !== known) return; // the Back button has changed it, and the event that says so is on its way
  const fields = new URLSearchParams({ moves: moves.join(" "), first, second });
  if (at < moves.length) fields.set("at", at);
  if (resigned !== null) fields.set("resigned", resigned);
  if (timeOver) fields.set("timeOver", "1");
  if (clock) fields.set("clock", clock);
  if (left) fields.set("left", left.join(" "));
  if (shared) fields.set("shared", shared);
  if (step) fields.set("step", step);
  if (start) fields.set("start", start);
  for (const name of names) fields.append("name", name);
  for (const line of lines) fields.append("line", line.join(" "));
  for (const [before, text] of Object.entries(notes)) if (text) fields.append("note", `${before} | ${text}`);
  if (isNew && location.hash !== `#${fields}`) history.pushState(null, "", `#${fields}`);
  else history.replaceState(null, "", `#${fields}`);
  known = location.hash;
}
