// Games as files, and positions as text.

import { html, useRef, useState } from "/static/vendor/htm-preact.js";
import { get } from "/static/api.js";
import { nameOf, SIDES } from "/static/status.js";

// Save and load the same JSON as the terminal does, with variations and comments, and share the address.
export function Records({ about, game, position, players, onLoad, onError, say }) {
  const file = useRef(null), [games, setGames] = useState([]);
  const person = Math.max(0, players.indexOf("you"));
  function save() {
    const result = game.resigned !== null ? SIDES[1 - game.resigned]
      : position.outcome ? (position.outcome.winner === null ? "draw" : SIDES[position.outcome.winner]) : null;
    const { lines, notes } = game;
    const record = { version: game.start ? 2 : 1, ...(game.start && { start: game.start }), game: about.identity, person: SIDES[person], bot: nameOf(about, players[1 - person]),
      moves: game.moves, result, resigned: game.resigned === person, ...(lines.length && { variations: lines }), ...(Object.keys(notes).length && { comments: notes }) };
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(record)], { type: "application/json" }));
    link.download = `${about.game.replace(/[^\w-]+/g, "-")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    say("The game was saved.");
  }
  async function load(event) {
    const [chosen] = event.target.files;
    event.target.value = "";
    if (!chosen) return;
    try {
      const found = parseGames(await chosen.text(), about.identity);
      await show(found[0]);
      setGames(found);
      say("The game was loaded.");
    } catch (problem) {
      onError(`${chosen.name} cannot be loaded: ${problem.message}`);
    }
  }
  async function show({ moves, person: side, start = "", end, winner, resigned, variations = [], comments = {} }) {
    await get("position", { moves: moves.join(" "), start });
    const sides = SIDES.map((each) => (!side || each === side ? "you" : about.opponent));
    const bot = side ? 1 - SIDES.indexOf(side) : 1 - SIDES.indexOf(winner); // or whoever has lost
    const loser = resigned ? 1 - bot : end === "resign" ? bot : null;
    onLoad({ moves, at: moves.length, first: sides[0], second: sides[1], start, resigned: loser, lines: variations, notes: comments });
  }
  return html`<div class="row">
    <button onClick=${save} disabled=${!position}>Save</button>
    <button onClick=${() => file.current.click()}>Load</button>
    <input type="file" class="hidden" tabindex="-1" aria-label="File of a game" ref=${file} onChange=${load} />
    <button onClick=${() => navigator.clipboard.writeText(location.href).then(() => say("The address was copied."), () => say(`The address is ${location.href}`))}>
      Copy the address</button>
    ${games.length > 1 ? html`<select aria-label="Game of the file"
        onChange=${({ target }) => show(games[target.value]).catch((problem) => onError(problem.message))}>
      ${games.map(({ moves, winner, result = winner }, i) => html`<option value=${i}>Game ${i + 1}: ${result ?? "no"}${SIDES.includes(result) ? " player won" : result ? "" : " result"}, ${moves.length} moves</option>`)}
    </select>` : null}
  </div>`;
}

// A position as text, to begin with.
export function SetUp({ position, onStart }) {
  const field = useRef(null);
  return html`<details>
    <summary>Set up a position</summary>
    <p class="dim">As the game prints it, or the names of the moves that lead to it.</p>
    <textarea ref=${field} aria-label="Position as text" rows="9">${position.text}</textarea>
    <div class="row">
      <button onClick=${() => onStart(field.current.value)}>Set up</button>
      <button onClick=${() => onStart("")}>Initial position</button>
    </div>
  </details>`;
}

// The games in a file: a saved one, or one a line, as match --save and replay export write them.
function parseGames(text, identity) {
  let records;
  try {
    records = /\}\s*\n\s*\{/.test(text) ? text.trim().split(/\s*\n/).map((line) => JSON.parse(line)) : [JSON.parse(text)];
  } catch {
    throw new Error("expected a game as JSON, as Save writes it, or one a line.");
  }
  const areNames = (each) => Array.isArray(each) && each.every((name) => typeof name === "string");
  records.forEach((record, i) => {
    const where = records.length > 1 ? `game ${i + 1}: ` : "";
    const { version = 1, game = identity, moves, person, variations = [], comments = {} } = record ?? { version: null };
    if (![1, 2].includes(version)) throw new Error(`${where}expected a game record of version 1.`);
    if (game !== identity) throw new Error(`${where}it is a game of ${game}, not of ${identity}.`);
    if (!areNames(moves) || (person !== undefined && !SIDES.includes(person))) throw new Error(`${where}expected moves as a list, and person as first or second.`);
    if (!Array.isArray(variations) || !variations.every(areNames) || !areNames(Object.values(comments ?? [0]))) {
      throw new Error(`${where}expected variations as lists of moves, and comments as texts.`);
    }
  });
  return records;
}
