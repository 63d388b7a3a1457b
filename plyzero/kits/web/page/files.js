// Games as files, and positions as text.

import { html, useEffect, useRef, useState } from "./html.js";
import { get, post } from "./api.js";
import { parseClock, timeLeft } from "./clock.js";
import { readSgf } from "./sgf.js";
import { nameOf, SIDES } from "./status.js";

const PGN = /^\s*(\[\s*\w+\s*"|[%;]|\d+\s*\.)/;  // the beginning of such a file

// Save and load the same JSON as the terminal does, SGF or PGN, with variations and comments, and share the address.
export function Records({ about, game, position, players, onLoad, onError, say }) {
  const file = useRef(null), [games, setGames] = useState([]);
  const person = Math.max(0, players.indexOf("you"));
  const winner = game.resigned !== null ? 1 - game.resigned : position?.outcome?.winner;
  function written() {
    const result = SIDES[winner] ?? (winner === null ? "draw" : null), { lines, notes, names: [first, second] } = game;
    return JSON.stringify({ version: game.start ? 2 : 1, ...(game.start && { start: game.start }), game: about.identity, person: SIDES[person], bot: nameOf(about, players[1 - person]),
      moves: game.moves, first, second, result, resigned: game.resigned === person,
      ...(game.resigned === 1 - person && { end: "resign" }), ...(game.clock && { clock: game.clock, left: timeLeft(game) }), ...(game.timeOver && { timeOver: true }), ...(lines.length && { variations: lines }), ...(Object.keys(notes).length && { comments: notes }) });
  }
  const saveAs = (kind) => post("export", { kind }, written()).then(({ text }) => download(text, kind)).catch(({ message }) => onError(message));
  function download(text, kind) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text]));
    link.download = `${about.game.replace(/[^\w-]+/g, "-")}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    say("The game was saved.");
  }
  async function load(event) {
    const [chosen] = event.target.files;
    event.target.value = "";
    if (!chosen) return;
    try {
      const text = await chosen.text(), isSgf = /^\s*\(\s*;/.test(text), isPgn = PGN.test(text);
      if (isSgf && !about.sgf) throw new Error("it is SGF, which has no names for this game's moves; expected JSON, as Save writes it.");
      const found = isSgf ? [readSgf(text, about.sgf)] : isPgn ? await openPgn(chosen) : parseGames(text, about.identity);
      await show(found[0]);
      setGames(found);
    } catch (problem) {
      onError(`${chosen.name} cannot be loaded: ${problem.message}`);
    }
  }
  // The games of a file that the server reads; it is asked for the others once they are chosen.
  async function openPgn(content) {
    const { titles, game: first } = await post("file", {}, content);
    return titles.map((title, number) => ({ title, ...(number ? { number, content } : first) }));
  }
  async function show(found) {
    const { moves, person: side, bot: other, first, second, start = "", end, winner, resigned, clock, left, timeOver, variations = [], comments = {}, note = "" }
      = found.content ? (await post("file", { number: found.number }, found.content)).game : found;
    await get("position", { moves: moves.join(" "), start });
    const sides = SIDES.map((each) => (!side || other === "you" || each === side ? "you" : about.opponent));
    const bot = side ? 1 - SIDES.indexOf(side) : 1 - SIDES.indexOf(winner); // or whoever has lost
    const loser = resigned ? 1 - bot : end === "resign" ? bot : null;
    onLoad({ moves, at: moves.length, first: sides[0], second: sides[1], start, resigned: SIDES[loser] ? loser : null,
      timeOver: Boolean(SIDES[loser] && timeOver), clock: parseClock(clock) ? clock : "", left: parseClock(clock) && left ? left : null, lines: variations, notes: comments, names: first && second ? [first, second] : [] }, `The game was loaded.${note}`);
  }
  return html`<div class="row">
    <button onClick=${() => download(written(), "json")} disabled=${!position}>Save</button>
    ${[about.sgf && "SGF", about.hasPgn && "PGN"].map((kind) => kind && html`<button onClick=${() => saveAs(kind.toLowerCase())} disabled=${!position}>Save as ${kind}</button>`)}
    <button onClick=${() => file.current.click()}>Load</button>
    <input type="file" class="hidden" tabindex="-1" aria-label="File of a game" ref=${file} onChange=${load} />
    <button onClick=${() => navigator.clipboard.writeText(location.href).then(() => say("The address was copied."), () => say(`The address is ${location.href}`))}>
      Copy the address</button>
    ${games.length > 1 ? html`<select aria-label="Game of the file"
        onChange=${({ target }) => show(games[target.value]).catch((problem) => onError(problem.message))}>
      ${games.map(({ title, moves, winner, result = winner }, i) => html`<option value=${i}>${title ?? html`Game ${i + 1}: ${result ?? "no"}${SIDES.includes(result) ? " player won" : result ? "" : " result"}, ${moves.length} moves`}</option>`)}
    </select>` : null}
  </div>`;
}

// A position to begin with: as text, in which clicks on a diagram change the pieces, if there is one.
export function SetUp({ position, onStart }) {
  const [text, setText] = useState(position.text), [piece, setPiece] = useState("x");
  useEffect(() => setText(position.text), [position.text]);
  const lines = text.split("\n").map(rowOf), cells = lines.flatMap((row) => row?.cells ?? []);
  const left = Math.min(...lines.map((row) => row?.cells[0].at ?? Infinity));
  const put = (line, at) => setText(text.split("\n").map((each, i) => i === line ? each.slice(0, at) + piece + each.slice(at + 1) : each).join("\n"));
  const [problem, setProblem] = useState("");
  const setUp = (start) => onStart(start).then(() => setProblem(""), ({ message }) => setProblem(message));
  const drawn = (glyph) => html`<span class=${{ x: "piece p0", o: "piece p1" }[glyph] ?? ""}>${"xo".includes(glyph) ? "" : glyph}</span>`;
  return html`<details>
    <summary>Set up a position</summary>
    ${cells.length ? html`<div class="row" role="group" aria-label="Piece that a click places">
        ${[...new Set([".", "x", "o", ...cells.map(({ glyph }) => glyph)])].map((each) => html`<button aria-label=${each} aria-pressed=${each === piece} onClick=${() => setPiece(each)}>${drawn(each)}</button>`)}
      </div>
      <div class="diagram">${lines.map((row, line) => row && html`<div style=${{ paddingLeft: `calc(${row.cells[0].at - left} * var(--cell) / 2)` }}>${row.cells.map(({ glyph, at }, column) =>
        html`<button aria-label=${`Row ${row.label}, column ${column + 1}: ${glyph}`} onClick=${() => put(line, at)}>${drawn(glyph)}</button>`)}</div>`)}</div>` : null}
    <p class="dim">${cells.length ? "Choose a piece and click where it stands; or type" : "Type"} the position as the game prints it, or the moves that lead to it.</p>
    <textarea aria-label="Position as text" rows="9" value=${text} onInput=${(event) => setText(event.target.value)} />
    <div class="row">
      <button onClick=${() => setUp(text)}>Set up</button>
      <button onClick=${() => setUp("")}>Initial position</button>
    </div>
    ${problem ? html`<p class="warning" role="alert">${problem}</p>` : null}
  </details>`;
}

// A line of a diagram, such as "  3 . x o": its label, and its cells with their places in the line; null if it is none.
function rowOf(line) {
  const [, label, rest] = /^ *(\d+) +(\S(?: \S)+)\s*$/.exec(line) ?? [];
  return /[^\d ]/.test(rest ?? "") ? { label, cells: [...rest].flatMap((glyph, i) => i % 2 ? [] : [{ glyph, at: line.indexOf(rest) + i }]) } : null;
}

const isMissing = (value) => value === undefined || value === null, isText = (value) => typeof value === "string";
const areTexts = (value) => Array.isArray(value) && value.every(isText), isTextOrMissing = (value) => isMissing(value) || isText(value);

// The fields of a record that the page uses: what each one is, and whether a value is that.
const FIELDS = {
  moves: ["a list of names", areTexts],
  start: ["a text", isTextOrMissing],
  first: ["a text", isTextOrMissing],
  second: ["a text", isTextOrMissing],
  person: ["first or second", (value) => isMissing(value) || SIDES.includes(value)],
  bot: ["a text", isTextOrMissing],
  result: ["a text", isTextOrMissing],
  winner: ["a text", isTextOrMissing],
  end: ["a text", isTextOrMissing],
  resigned: ["true or false", (value) => isMissing(value) || typeof value === "boolean"],
  clock: ["a clock, such as 5m+3s", (value) => isMissing(value) || (isText(value) && Boolean(parseClock(value)))],
  left: ["two numbers of seconds", (value) => isMissing(value) || (Array.isArray(value) && value.length === 2 && value.every((each) => typeof each === "number" && each >= 0 && each < 1e9))],
  timeOver: ["true or false", (value) => isMissing(value) || typeof value === "boolean"],
  variations: ["lists of names", (value) => isMissing(value) || (Array.isArray(value) && value.every(areTexts))],
  comments: ["texts by the moves before them", (value) => isMissing(value) || (value.constructor === Object && areTexts(Object.values(value)))],
};

// The games in a file: a saved one, or one a line, as match --save and replay export write them; of each its FIELDS.
function parseGames(text, identity) {
  let records;
  try {
    records = /\}\s*\n\s*\{/.test(text) ? text.trim().split(/\s*\n/).map((line) => JSON.parse(line)) : [JSON.parse(text)];
  } catch {
    throw new Error("expected a game as JSON, as Save writes it, or one a line.");
  }
  return records.map((record, i) => {
    const where = records.length > 1 ? `game ${i + 1}: ` : "";
    const { version = 1, game = identity } = record ?? { version: null };
    if (![1, 2].includes(version)) throw new Error(`${where}expected a game record of version 1.`);
    if (game !== identity) throw new Error(`${where}it is a game of ${isText(game) ? game : JSON.stringify(game)}, not of ${identity}.`);
    return Object.fromEntries(Object.entries(FIELDS).map(([name, [kind, isRight]]) => {
      if (isRight(record[name])) return [name, record[name] ?? undefined];
      throw new Error(`${where}expected ${name} as ${kind}, got ${(JSON.stringify(record[name]) ?? "nothing").slice(0, 60)}.`);
    }));
  });
}
