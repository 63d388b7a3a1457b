// What a review has found: who lost the game by which turns, how accurate both players were, what the rolls gave.
// `review` is the JSON of plyzero/kits/review/description.py. `named` returns the name of a player by the number.

import { html } from "./html.js";
import { Graph } from "./moves.js";
import { capital, SIDES } from "./status.js";

const unitOf = (unit) => (unit === "score" ? "percentage points" : "points");
const number = (value, unit) => (unit === "score" ? (100 * value).toFixed(0) : value.toFixed(2)).replace(/^-(0(\.0+)?)$/, "$1");
const signed = (value, unit) => (value > 0 ? "+" : "") + number(value, unit);

// A difference of values in words, with its uncertainty: "0.68 ± 0.05 points".
export const amount = (value, unit, margin = 0) => `${number(value, unit)}${margin > 0 ? ` ± ${number(margin, unit)}` : ""} ${unitOf(unit)}`;

// The moves and the rolls of a game, as Moves takes them. movers: who made each, null for a roll. steps: see stepsOf.
// setup: the first roll in words if it is a set-up, otherwise "".
export function entriesOf({ moves, movers, steps, setup, review, named, noteOf = () => undefined }) {
  const numbers = numbersOf(movers);
  const mistakeOf = (i) => review?.turns.find(({ ply, plies }) => ply <= i && i < ply + plies)?.mistake;
  return moves.map((name, i) => movers[i] === null ? { name: i === 0 && setup ? setup : name, ...luckOf(review, named, i) }
    : { name, number: numbers[i], step: steps.findIndex((each) => each > i), mistake: mistakeOf(i), note: noteOf(i) });
}

// Of each move its number among the moves; rolls have none.
function numbersOf(movers) {
  let count = 0;
  return movers.map((by) => (by === null ? null : ++count));
}

// What the rolls that end here gave the first player.
function luckOf(review, named, i) {
  const rolls = review?.rolls.find(({ ply, plies }) => ply + plies - 1 === i);
  if (!rolls) return {};
  const luck = signed(rolls.luck, review.unit);
  return { luck, about: `luck of ${named(0)}: ${luck} ${unitOf(review.unit)}` };
}

// The turns that are named in any case: those that lost most, of the loser or, without one, of both players.
function largestOf({ players, winner, turns }) {
  const sides = SIDES.includes(winner) ? [1 - SIDES.indexOf(winner)] : [0, 1];
  return sides.flatMap((side) => players[side].largest).map((i) => turns[i]);
}

// What would have been better in the position after `at` moves, as a drawing; null where no turn that is named begins.
export function betterMove(review, at) {
  const turn = review?.turns?.find(({ ply }) => ply === at);
  return turn?.line.length && (turn.mistake || largestOf(review).includes(turn)) ? { line: turn.line } : null;
}

// steps: the plies that are shown. step: the one that is. onShow is called with a ply. retry: the turn for which another is
// sought; Retry is offered where canRetry(by), and calls onRetry(turn, ply) with the place at which a better move differs.
export function Judged({ review, movers, steps, step, named, onShow, canRetry = () => false, onRetry, retry }) {
  const { unit, turns, players, scale, verdict, rolls, plies } = review, numbers = numbersOf(movers);
  const largest = largestOf(review), others = turns.filter((turn) => turn.mistake && !largest.includes(turn));
  const item = (turn) => html`<${Turn} turn=${turn} label=${labelOf(turn, turns.indexOf(turn) + 1, numbers)} named=${named} unit=${unit} onShow=${onShow}
    onRetry=${canRetry(turn.by) && turn.choices > 2 && onRetry} isRetried=${retry === turn} />`;
  const accuracy = (side) => (players[side].accuracy === null ? "has had no choice" : percent(players[side].accuracy));
  const isOver = review.winner !== null;  // the openings of a game are harder than whole games
  const beside = [["random play has", scale.random], ["the bot", scale.bot]].filter(([, share]) => isOver && share !== null);
  const score = unit === "score" ? "score" : "points";
  return html`
    ${verdict ? html`<p><b>${capital(verdict.replace(/the (first|second) player/i, (_, side) => named(SIDES.indexOf(side))))}</b></p>` : null}
    ${largest.length ? html`<h3>Largest losses</h3><ol class="turning">${largest.map(item)}</ol>` : verdict ? null : html`<p>No turn has lost anything that the judge sees.</p>`}
    ${others.length ? html`<details><summary>${others.length} ${largest.length ? "more " : ""}${others.length > 1 ? "mistakes" : "mistake"}</summary><ol class="turning">${others.map(item)}</ol></details>` : null}
    <${Graph} unit=${unit} label=${`Expected ${score} of ${named(0)}`} scores=${steps.map((ply) => plies[ply].value)}
      withoutLuck=${rolls.length ? steps.map((ply) => plies[ply].withoutLuck) : null} step=${step} onShow=${(next) => onShow(steps[next])} />
    <p>Accuracy: ${named(0)} ${accuracy(0)}, ${named(1)} ${accuracy(1)}${beside.length
      ? `; ${beside.map(([who, share]) => `${who} ${percent(share)}`).join(", ")} in this game` : ""}.</p>
    ${rolls.length ? html`<p>${[0, 1].map((side) => `${capital(named(side))}: luck ${signed(players[side].luck, unit)}, play ${signed(-players[side].lost, unit)} ${unitOf(unit)}. `)}The number at a roll is what it gave ${named(0)}.</p>` : null}
    <p class="dim">${review.judge}</p>`;
}

const percent = (share) => `${Math.round(share)} %`;
const spoken = (line) => line.map((move) => move.written ?? move.name ?? move).join(" ");

// "Turn 12 (moves 31-34)", or "Move 12" where each move is a turn.
function labelOf({ ply, plies }, turn, numbers) {
  const first = numbers[ply], last = numbers[ply + plies - 1];
  if (first === last) return first === turn ? `Move ${turn}` : `Turn ${turn} (move ${first})`;
  return `Turn ${turn} (moves ${first}-${last})`;
}

function Turn({ turn, label, named, unit, onShow, onRetry, isRetried }) {
  const { ply, by, moves, best, lost, margin, clear, mistake, points, line, answer, written = turn } = turn, differs = moves.findIndex((name, i) => name !== best[i]);
  const kind = mistake ? `${/^[aeiou]/.test(mistake) ? "an" : "a"} ${mistake} that` : "which";
  const what = clear ? `${kind} lost ${amount(lost, unit, margin)}${points >= 0.05 ? ` and about ${points.toFixed(1)} points` : ""}`
    : `which lost ${amount(lost, unit, margin)}, so it is not clear whether it was worse`;
  const then = line.slice(best.length);
  return html`<li>
    <button onClick=${() => onShow(ply)}>${label}</button> ${named(by)} played <b>${spoken(written.moves)}</b>, ${what}.
    ${answer.length ? ` The answer: ${spoken(answer)}.` : ""}
    ${isRetried || !line.length ? "" : html` Better: <b>${spoken(written.best)}</b>${then.length ? `, then ${spoken(then)}` : ""}.`}
    ${onRetry && differs >= 0 ? html` <button onClick=${() => onRetry(turn, ply + differs)}>Retry</button>` : null}</li>`;
}
