// The first moves and how random games end, as /api/ends of `plyzero serve` answers: what shows whether these are the rules that
// are meant.

import { isChance, moversOf } from "./positions.js";
import { ONGOING } from "./wasm.js";

const POSITIONS = 1000; // of random games: whole games, until they have so many
const MOST_KINDS = 6; // kinds of ends that are shown, the commonest first
const MOST_OUTCOMES = 6; // outcomes with other points that are kinds of their own
const LAST_MOVES = 2; // of an example
const MOST_NAMES = 40, FEW_NAMES = 6; // of first moves

export function describeEnds(positions) {
  const games = randomGames(positions);
  const outcomes = new Set(games.map((game) => JSON.stringify(positions.outcomeOf(game.positions.at(-1)))));
  const kinds = new Map();
  for (const game of games) {
    const how = howItEnded(positions, game, outcomes.size <= MOST_OUTCOMES), key = how.join();
    kinds.set(key, { how, games: [...(kinds.get(key)?.games ?? []), game] });
  }
  const commonest = [...kinds.values()].sort((one, other) => other.games.length - one.games.length).slice(0, MOST_KINDS);
  return { firstMoves: firstMoves(positions), ends: commonest.map((kind) => describeEnd(positions, kind, games.length, outcomes.size > MOST_OUTCOMES)) };
}

function randomGames(positions) {
  const games = [];
  for (let count = 0; count < POSITIONS; count += games.at(-1).positions.length) games.push(randomGame(positions));
  return games;
}

function randomGame(positions) {
  const game = { positions: [positions.start], moves: [] };
  for (let plies = 0; ;) {
    const here = game.positions.at(-1);
    if (here.outcome !== ONGOING || plies === positions.game.maxPlies) return game;
    plies += Number(!isChance(here));
    game.moves.push(positions.randomMove(here));
    game.positions.push(positions.play(here, game.moves.at(-1)));
  }
}

const pliesOf = (game) => moversOf(game.positions).filter((by) => by !== null).length;

function pointsOf(positions, game) {
  const score = positions.outcomeOf(game.positions.at(-1))?.score;
  return score ? ` by ${score}` : "";
}

// Returns the result, and what else a person sees of the end, each in a few words.
function howItEnded(positions, game, withPoints) {
  const outcome = positions.outcomeOf(game.positions.at(-1)), lastMover = moversOf(game.positions).findLast((by) => by !== null);
  let result = "not over";
  if (outcome) result = outcome.winner === null ? "drawn" : `player ${outcome.winner} won`;
  const how = [result + (withPoints ? pointsOf(positions, game) : "")];
  if (outcome && lastMover !== undefined && outcome.winner === 1 - lastMover) how.push("the last mover lost");
  if (positions.isFull(game.positions.at(-1))) how.push("the board is full");
  else if (pliesOf(game) === positions.game.maxPlies) how.push("after max_plies");
  return how;
}

function describeEnd(positions, { how, games }, all, hasManyPoints) {
  const example = games.reduce((shortest, game) => (pliesOf(game) < pliesOf(shortest) ? game : shortest)), plies = pliesOf(example);
  const last = example.positions.at(-1), points = hasManyPoints ? pointsOf(positions, example) : "", [result, ...others] = how;
  const lastMoves = example.moves.slice(-LAST_MOVES).map((move, i, shown) => {
    const before = example.positions[example.moves.length - shown.length + i];
    return `${isChance(before) ? "roll" : `player ${before.toPlay}`}: ${positions.nameOf(before, move)}`;
  });
  const caption = [points ? `${result}, here${points}` : result, ...others, ...lastMoves, `${plies === 1 ? "1 ply" : `${plies} plies`}; ${games.length} of ${all} games`];
  return { svg: positions.picture(last, example.positions.at(-2)), text: "", caption };
}

function firstMoves(positions) {
  const game = { positions: [positions.start], moves: [] }, { start } = positions;
  positions.roll(game);
  const rolled = game.moves.map((move, i) => positions.nameOf(game.positions[i], move));
  const sentences = [];
  if (start.awaitsSetup) sentences.push(`Set-ups: numbers 0 to ${positions.moves(start).length - 1}`);
  else if (rolled.length) sentences.push(`First rolls ${numbered(positions, start)}`);
  return [...sentences, `First moves ${rolled.length ? `after ${rolled.join(" ")} ` : ""}${numbered(positions, game.positions.at(-1))}`];
}

function numbered(positions, position) {
  const names = positions.moves(position).map((move) => positions.nameOf(position, move));
  const shown = names.length > MOST_NAMES ? [...names.slice(0, FEW_NAMES), "...", ...names.slice(-FEW_NAMES)] : names;
  return `(${names.length}): ${shown.join(" ") || "none"}`;
}
