// What a search of the worker has found, as /api/think of `plyzero serve` answers it.

import { MAX_LINE, sampled } from "./positions.js";

const HOPELESS = 0.05; // the expected score below which a bot offers to resign
const LINES = 3; // moves whose lines are drawn

const rounded = (value, digits = 4) => Number(value.toFixed(digits));
const scoreOf = (value) => (value === null ? null : rounded((1 + value) / 2));

// positions: of positions.js. result: of search.js in `position`. of: number of simulations in all.
export function describeFound(positions, position, result, { of, isLast = false }) {
  const rank = (move) => [Number(move.action !== result.best), -move.visits, -move.prior];
  const order = [...result.moves].sort((one, other) => compare(rank(one), rank(other)));
  const moveInfos = order.map((move, i) => {
    const pv = positions.namesOf(position, move.line);
    return {
      move: pv[0], visits: move.visits, winrate: scoreOf(move.q), prior: rounded(move.prior), order: i, pliesToEnd: move.plies || null,
      pv, written: pv.slice(0, MAX_LINE), policy: rounded(move.policy),
      ...(isLast && i < LINES && { line: positions.line(position, move.line) }),
    };
  });
  const rootInfo = {
    currentPlayer: position.toPlay, visits: result.simulations, winrate: scoreOf(result.value), drawrate: rounded(result.draw),
    proven: result.proven, pliesToEnd: result.plies, ...(result.points !== null && { scoreLead: rounded(result.points, 2) }),
  };
  return { simulations: result.simulations, of, moveInfos, rootInfo, finalBoard: null };
}

function compare(one, other) {
  const at = one.findIndex((each, i) => each !== other[i]);
  return at < 0 ? 0 : one[at] - other[at];
}

// Returns the action that a player with this temperature plays; at any temperature the best one where the distance to the end is known.
export function chosen(result, temperature, random) {
  if (!temperature || result.plies !== null) return result.best;
  const weights = result.moves.map(({ policy }) => policy ** (1 / temperature));
  return sampled(result.moves, weights, random()).action;
}

// Returns whether the player to move should resign: both the position and its best move say so.
export function isHopeless({ value, best, moves }) {
  const q = moves.find(({ action }) => action === best).q ?? -1;
  return (1 + Math.max(value, q)) / 2 < HOPELESS;
}
