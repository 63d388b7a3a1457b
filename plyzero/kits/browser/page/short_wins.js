// Wins of a few plies, which a search with a network may miss: among many moves it tries some, or has no visits left for the
// answers. As plyzero/search/solver.py does, alpha-beta looks for a win within 1, 3, 5 ... plies; of won or not it needs no window.

import { ONGOING } from "./wasm.js";

const NODES = 64; // positions for each simulation of the search that may be made
const MOST_PLIES = 63;

// Returns `result`, of a search of `state`, with the shortest win if the positions suffice to find one. In games with dice, and
// where something is proven already, it stays as it is.
export function withShortWin(rules, state, result) {
  if (result.proven || rules.game.numChances || !result.simulations) return result;
  const line = shortWin(rules, state, NODES * result.simulations);
  if (!line) return result;
  const [best] = line, won = { q: 1, proven: "win", plies: line.length, policy: 1, line };
  const moves = result.moves.map((move) => (move.action === best ? { ...move, ...won } : { ...move, policy: 0 }));
  return { ...result, value: 1, draw: 0, proven: "win", plies: line.length, best, moves };
}

// Returns the moves of both players, the loser resisting as long as possible, with which the player to move wins soonest; null
// if `most` positions do not suffice to find it.
export function shortWin(rules, state, most) {
  const winner = rules.toPlay(state);
  let left = most;

  // Returns the moves to a win within so many plies, null if there is none, undefined once no position is left.
  function lineFrom(here, plies) {
    const isWinner = rules.toPlay(here) === winner, next = [];
    let longest = null;
    for (const action of rules.legal(here)) {
      if (left-- <= 0) return undefined;
      const after = rules.play(here, action), outcome = rules.outcome(after);
      if (outcome === winner && isWinner) return [action];
      if (outcome === winner) longest ??= [action];
      else if (outcome !== ONGOING || plies === 1) {
        if (!isWinner) return null;
      } else next.push({ action, after, replies: plies > 2 ? rules.legal(after).length : 0 });
    }
    next.sort((one, other) => one.replies - other.replies);
    for (const { action, after } of next) {
      const line = lineFrom(after, plies - 1);
      if (line === undefined) return undefined;
      if (line && isWinner) return [action, ...line];
      if (!line && !isWinner) return null;
      if (line && line.length >= (longest?.length ?? 0)) longest = [action, ...line];
    }
    return isWinner ? null : longest;
  }

  for (let plies = 1; plies <= MOST_PLIES; plies += 2) {
    const line = lineFrom(state, plies);
    if (line !== null) return line ?? null;
  }
  return null;
}
