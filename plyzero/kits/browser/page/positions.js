// The positions of a game as the page shows them, from the rules and game.json: the answers of /api/position of `plyzero serve`.

import { DRAW, MAX_ROLLS, ONGOING } from "./wasm.js";

export const MAX_LINE = 6; // moves of a line that are shown

// A position: its state, whether it awaits a set-up, toPlay, outcome (as of wasm.js), and chances: the probabilities of rolls,
// null where a player moves or the game is over.

// What can be asked of a game. rules: of wasm.js, whose `game` is game.json. random: returns numbers from [0, 1).
export class Positions {
  #paths; // name of a move -> names of the cells that are clicked
  #cells = new WeakMap(); // parts of a drawing -> those of each cell, by its name in small letters

  constructor(rules, random = Math.random) {
    const { names, paths } = rules.game;
    this.rules = rules;
    this.game = rules.game;
    this.random = random;
    this.#paths = new Map(names.texts.map((name, i) => [name, paths[i].split(" ").filter(Boolean)]));
    this.start = this.#position(rules.start, Boolean(this.game.setups));
  }

  // Returns the position after a legal move, a possible roll or a set-up.
  play(position, move) {
    if (position.awaitsSetup) return this.#position(this.#setUp(move));
    return this.#position(this.rules.play(position.state, move));
  }

  // Returns the legal moves, or the possible rolls or set-ups.
  moves(position) {
    if (position.awaitsSetup) return [...this.game.setups.values.keys()];
    if (position.chances) return [...position.chances.keys()].filter((roll) => position.chances[roll] > 0);
    return position.outcome === ONGOING ? this.rules.legal(position.state) : [];
  }

  // Returns the name of a move, roll or set-up.
  nameOf(position, move) {
    if (position.awaitsSetup) return String(move);
    return textOf(position.chances ? this.game.rolls : this.game.names, move, position.state) ?? String(move);
  }

  // Returns {positions, moves} of a game, one position more than moves. Throws an Error if a name is that of no legal move.
  parse(names) {
    const positions = [this.start], moves = [];
    for (const name of names) {
      const here = positions.at(-1), wanted = name.toLowerCase();
      const move = this.moves(here).find((each) => this.nameOf(here, each).toLowerCase() === wanted);
      if (move === undefined) throw new Error(`expected ${isChance(here) ? "a roll" : "a legal move"} after ${moves.length} moves, got ${name}`);
      moves.push(move);
      positions.push(this.play(here, move));
    }
    return { positions, moves };
  }

  // Adds the rolls that are due at the end of a game, by chance.
  roll({ positions, moves }) {
    for (let rolls = 0; isChance(positions.at(-1)); rolls++) {
      if (rolls === MAX_ROLLS) throw new Error(`after ${MAX_ROLLS} rolls no player is to move`);
      moves.push(this.randomMove(positions.at(-1)));
      positions.push(this.play(positions.at(-1), moves.at(-1)));
    }
  }

  // Returns a random move, each as likely as another one, or a roll by its probability.
  randomMove(position) {
    const moves = this.moves(position);
    return sampled(moves, moves.map((move) => (position.chances ? position.chances[move] : 1)), this.random());
  }

  // Returns what /api/position answers: the position after `at` moves and rolls of the game with these names; null = the last one.
  describe(names, at = null) {
    const played = this.parse(names);
    this.roll(played);
    const { positions, moves } = played, movers = moversOf(positions);
    let here = Math.min(at ?? movers.length, movers.length);
    while (here < movers.length && movers[here] === null) here += 1;
    const position = positions[here], turn = lastTurn(movers.slice(0, here)), faults = [];
    const spelled = moves.map((move, i) => this.nameOf(positions[i], move)), parts = this.parts(position);
    const missing = parts.filter((part) => part === null).length;
    if (missing) faults.push(`${missing} of the ${parts.length} parts of the board are not known here, and are left out.`);
    const scoreboard = this.game.scoreboard ? [0, 1].map((side) => textOf(this.game.scoreboard, side, position.state)) : ["", ""];
    if (scoreboard.includes(null)) faults.push("The scoreboard is not known here.");
    return {
      moves: spelled,
      written: spelled.map((name, i) => (positions[i].awaitsSetup ? `set-up ${name}` : name)),
      movers,
      setup: moves.length && positions[0].awaitsSetup ? `set-up ${moves[0]}` : "",
      rollers: positions.slice(0, -1).map((each) => (each.chances ? each.toPlay : null)),
      at: here,
      svg: this.#picture(parts, turn.length ? this.parts(positions[turn[0]]) : parts),
      turn: turn.map((ply) => this.spots(this.parts(positions[ply]), spelled[ply])),
      faults,
      turns: this.game.turns,
      colours: this.game.colours,
      fills: this.game.fills,
      scoreboard: scoreboard.map((text) => text ?? "?"),
      text: "",
      toPlay: position.toPlay,
      legal: this.moves(position).map((move) => {
        const name = this.nameOf(position, move);
        return { name, written: name, path: this.#paths.get(name) ?? [], spots: this.spots(parts, name) };
      }),
      territory: [],
      outcome: this.outcomeOf(position),
    };
  }

  // Returns {winner, score} of a finished game, null for another one.
  outcomeOf({ outcome, state }) {
    if (outcome === ONGOING) return null;
    const score = this.rules.score(state);
    return { winner: outcome === DRAW ? null : outcome, ...(score && { score }) };
  }

  // Returns the parts of the drawing of a position; null for one that is not known.
  parts({ state }) {
    return this.game.board.items.map((_, part) => textOf(this.game.board, part, state));
  }

  // Returns whether a piece is on every cell but dots.
  isFull(position) {
    return this.parts(position).slice(1, 1 + this.game.cells).every((part) => hasPiece(part) || /class="cell dot/.test(part));
  }

  // Returns the drawing of a position. The cells whose parts were others `before` are marked.
  picture(position, before = position) {
    return this.#picture(this.parts(position), this.parts(before));
  }

  #picture(parts, before) {
    const isCell = (i) => i >= 1 && i <= this.game.cells;
    return parts.map((part, i) => (isCell(i) && isChanged(part, before[i]) ? part?.replace(/class="[^"]*/, "$& last") : part)).join("");
  }

  // Returns the places of the cells that are clicked for a move, in units of the picture; null for a card. Of cells with one name
  // a move lifts the piece of the last one that has a piece, and lands on the first one that has none.
  spots(parts, name) {
    const path = this.#paths.get(name) ?? [], named = this.#cellsIn(parts);
    return path.map((cell, i) => {
      const cells = named.get(cell) ?? [], isLifted = path.length > 1 && i === 0;
      const found = isLifted ? cells.findLast((at) => hasPiece(parts[at])) : cells.find((at) => !hasPiece(parts[at]));
      return this.game.places[(found ?? cells.at(-1)) - 1] ?? null;
    });
  }

  // Returns the first moves of a line, up to a roll: by whom, the name, and the places.
  line(position, moves) {
    const found = [];
    for (const move of moves.slice(0, MAX_LINE)) {
      if (isChance(position)) break;
      const name = this.nameOf(position, move);
      found.push({ by: position.toPlay, name, written: name, spots: this.spots(this.parts(position), name) });
      position = this.play(position, move);
    }
    return found;
  }

  // Returns the names of moves and rolls from a position on.
  namesOf(position, moves) {
    return moves.map((move) => {
      const name = this.nameOf(position, move);
      position = this.play(position, move);
      return name;
    });
  }

  // Returns why no legal move begins with clicks on these cells, as a sentence.
  why(position, cells) {
    const parts = this.parts(position), paths = [...this.#paths.values()];
    const isMeant = paths.some((path) => cells.every((cell, i) => path[i] === cell));
    const lifts = this.moves(position).some((move) => (this.#paths.get(this.nameOf(position, move)) ?? []).length > 1);
    if (cells.length === 1 && !isMeant) return `No move begins at ${cells[0]}.`;
    const own = this.#cellsIn(parts).get(cells[0]) ?? [];
    if (cells.length === 1 && !lifts && own.length && own.every((at) => hasPiece(parts[at]))) return `${cells[0]} is taken.`;
    return `${cells.join(" to ")} is not a legal move here.`;
  }

  // Returns the pieces that a move adds: their places, and by whom.
  added(position, name) {
    const move = this.moves(position).find((each) => this.nameOf(position, each) === name);
    if (move === undefined) throw new Error(`expected a legal move, got ${name}`);
    const before = this.parts(position), after = this.parts(this.play(position, move));
    return after.flatMap((part, i) => {
      const spot = this.game.places[i - 1];
      if (!isChanged(part, before[i]) || !spot || !hasPiece(part)) return [];
      const owner = /class="[^"]*\bp([01])\b/.exec(part)?.[1];
      return [{ spot, by: owner === undefined ? position.toPlay : Number(owner) }];
    });
  }

  // Returns name of a cell -> where its parts are. In some games each player has other names.
  #cellsIn(parts) {
    if (!this.#cells.has(parts)) {
      const named = new Map();
      for (let at = 1; at <= this.game.cells; at++) {
        const name = cellOf(parts[at]);
        named.set(name, [...(named.get(name) ?? []), at]);
      }
      this.#cells.set(parts, named);
    }
    return this.#cells.get(parts);
  }

  #position(state, awaitsSetup = false) {
    const { rules } = this, outcome = awaitsSetup ? ONGOING : rules.outcome(state);
    const chances = awaitsSetup || outcome !== ONGOING ? null : rules.chances(state);
    return { state, awaitsSetup, outcome, chances, toPlay: rules.toPlay(state) };
  }

  #setUp(number) {
    const { at, values } = this.game.setups, state = this.rules.start.slice();
    for (const [i, place] of at.entries()) state[place] = values[number][i];
    return state;
  }
}

// Returns one of the items, whose probabilities are as the weights. random: from [0, 1).
export function sampled(items, weights, random) {
  let left = random * weights.reduce((sum, each) => sum + each, 0);
  for (const [i, item] of items.entries()) {
    left -= weights[i];
    if (left < 0 && weights[i] > 0) return item;
  }
  return items[weights.findLastIndex((each) => each > 0)];
}

export const isChance = ({ awaitsSetup, chances }) => awaitsSetup || chances !== null;

// Returns the player who moved at each position but the last; null for a roll.
export const moversOf = (positions) => positions.slice(0, -1).map((each) => (isChance(each) ? null : each.toPlay));

// Returns the text of an item of a table of game.json in a state; null if it is not known there.
export function textOf({ words, texts, nodes, items }, item, state) {
  let reference = items[item];
  while (reference !== null && reference < 0) {
    const [at, ...ranges] = nodes[-1 - reference], bit = at - state.length; // beyond the bytes of the state are their bits
    const value = bit < 0 ? state[at] : (state[bit >> 3] >> (bit & 7)) & 1;
    reference = null;
    for (let i = 0; i < ranges.length; i += 3) if (ranges[i] <= value && value <= ranges[i + 1]) reference = ranges[i + 2];
  }
  if (reference === null) return null;
  const text = texts[reference];
  return typeof text === "string" ? text : text.map((word) => wordIn(words[word], state)).join("");
}

// A word is a text, or a number of the state: factor times an integer, and `plus` more.
function wordIn(word, state) {
  if (typeof word === "string") return word;
  const [at, bytes, isSigned, factor, plus] = word;
  let value = 0;
  for (let i = 0; i < bytes; i++) value += state[at + i] * 256 ** i;
  if (isSigned && value >= 256 ** bytes / 2) value -= 256 ** bytes;
  return String(factor * value + plus);
}

// Returns the plies of the last turn of a player: its moves, with nothing but rolls between them.
function lastTurn(movers) {
  const turn = [];
  for (let ply = movers.length - 1; ply >= 0; ply--) {
    if (movers[ply] === null) continue;
    if (turn.length && movers[ply] !== movers[turn[0]]) break;
    turn.unshift(ply);
  }
  return turn;
}

// The name of the cell that a part draws, in small letters, as in paths; and whether a piece is on it.
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };
const cellOf = (part) => /data-cell="([^"]*)"/.exec(part ?? "")?.[1].replace(/&(.*?);/g, (_, name) => ENTITIES[name]).toLowerCase();
const CELL = / data-cell="[^"]*"/; // its name may be another one for each player
const isChanged = (part, before) => part?.replace(CELL, "") !== before?.replace(CELL, "");
const hasPiece = (part) => /class="[^"]*\b(stone|figure|wall|owned|mark)\b/.test(part ?? "");
