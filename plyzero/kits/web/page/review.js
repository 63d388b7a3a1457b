// The review of a game: its turning points, and a curve of the expected result.

import { html, useEffect, useState } from "/static/html.js";
import { stream } from "/static/api.js";
import { Graph, Moves } from "/static/moves.js";
import { leads } from "/static/network.js";
import { sideName, stepsOf } from "/static/status.js";

const STRENGTHS = [256, 1024, 4096], TURNING_POINTS = 3;

export function reviewGame(fields, setReview, setError) {
  setReview({ searched: 0, all: 0 });
  return stream("review", fields, (event) => {
    setReview(event.done ? event : { searched: event.done_of[0], all: event.done_of[1] });
  }, (problem) => { setReview(null); setError(problem); });
}

export function Review({ review, game, position, why, canRetry, onShow, onFollow, onDelete, onNote, onRetry, retry, onReview }) {
  const named = (side) => sideName(position.colours, side);
  const [simulations, setSimulations] = useState(1024);
  const { moves, at } = game, { movers } = position;
  const steps = stepsOf(movers), step = steps.indexOf(at);
  const numbers = numbersOf(movers), plies = review?.plies, hasNotes = Object.keys(game.notes).length > 0;
  const forks = game.lines.map((line) => ({ line, from: line.findIndex((name, i) => name !== moves[i]) })).filter(({ from }) => from >= 0);
  const entries = moves.map((name, i) => movers[i] === null ? { name }
    : { name, number: numbers[i], step: steps.findIndex((each) => each > i), mistake: plies?.[i]?.mistake, note: hasNotes && game.notes[moves.slice(0, i + 1).join(" ")] });
  for (const { line, from } of forks.sort((one, other) => other.from - one.from)) {
    const rest = line.slice(from);
    entries.splice(from + 1, 0, { name: `${rest.slice(0, 4).join(" ")}${rest.length > 4 ? " …" : ""}`, onFollow: () => onFollow(line, from + 1), onDelete: () => onDelete(line) });
  }
  return html`<section class="card" aria-label="Game">
    <h2>Game</h2>
    <${Moves} entries=${entries} step=${step} last=${steps.length - 1} onShow=${(next) => onShow(steps[next])} />
    <${Note} text=${game.notes[moves.slice(0, at).join(" ")] ?? ""} onNote=${onNote} />
    <div class="row">
      <button disabled=${!moves.length || Boolean(why) || (review && !plies)} title=${why} onClick=${() => onReview(simulations)}>Review the game</button>
      <span class="pair"><label for="strength">Simulations of a review</label>
        <select id="strength" value=${simulations} onChange=${(event) => setSimulations(Number(event.target.value))}>
          ${STRENGTHS.map((number) => html`<option value=${number}>${number}</option>`)}
        </select></span>
      ${review && !plies ? html`<span role="status">${review.searched} of ${review.all} simulations</span>` : null}
    </div>
    ${why ? html`<p class="dim">${why}</p>` : null}
    ${plies ? html`
      <${Mistakes} plies=${plies} named=${named} moves=${moves} numbers=${numbers} canRetry=${canRetry} onShow=${onShow} onRetry=${onRetry} retry=${retry} />
      <${Graph} who=${named(0)} scores=${steps.map((ply) => plies[ply]?.winrate)} step=${step} onShow=${(next) => onShow(steps[next])} />
      ${plies[at]?.lead === undefined || plies[at].lead === null ? null
        : html`<p>Here ${named(0)} ${leads(plies[at].lead)}.</p>`}
      <p>Accuracy: ${named(0)} ${accuracy(review, 0)}, ${named(1)} ${accuracy(review, 1)}.</p>
      <p class="dim">${review.judge}</p>` : null}
  </section>`;
}

// The comment on the position that is shown. What is typed stays while a search changes the page.
function Note({ text, onNote }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  return html`<input class="note" maxlength="500" aria-label="Comment on this position" placeholder="Comment on this position"
    value=${typed} onInput=${(event) => setTyped(event.target.value)} onChange=${() => onNote(typed)} />`;
}

// Of each move its number among the moves; rolls have none.
function numbersOf(movers) {
  let count = 0;
  return movers.map((by) => (by === null ? null : ++count));
}

const points = (lost) => `${Math.round(100 * lost)} percentage points of expected score`;
const accuracy = (review, player) => (review.accuracy[player] === null ? "has not moved" : `${review.accuracy[player]} %`);

// What would have been better in the position that is shown, as a drawing; null if what was played lost little.
export function betterMove(plies, position) {
  const judged = plies?.[position.at];
  return judged?.mistake ? { line: judged.line } : null;
}

const spoken = (line) => line.map(({ name }) => name).join(" ");

function Mistakes({ plies, named, moves, numbers, canRetry, onShow, onRetry, retry }) {
  const found = plies.map((ply, i) => ({ ...ply, i })).filter((ply) => ply.mistake).sort((a, b) => b.lost - a.lost);
  if (!found.length) return html`<p>No move has lost 10 percentage points of expected score.</p>`;
  const item = ({ i, by, mistake, lost, line, answer }) => html`<li>
    <button onClick=${() => onShow(i)}>Move ${numbers[i]}</button> ${named(by)} played <b>${moves[i]}</b>: ${mistake},
    which lost ${points(lost)}.${answer.length ? ` The answer: ${spoken(answer)}.` : ""}${retry === plies[i] ? "" : html` Better: <b>${line[0].name}</b>${line.length > 1 ? `, then ${spoken(line.slice(1))}` : ""}.`}
    ${canRetry(by) ? html` <button onClick=${() => onRetry(plies[i], i, moves[i])}>Retry</button>` : null}</li>`;
  const others = found.slice(TURNING_POINTS);
  return html`<h3>${found.length > 1 ? "Turning points" : "Turning point"}</h3>
    <ol class="turning">${found.slice(0, TURNING_POINTS).map(item)}</ol>
    ${others.length ? html`<details><summary>${others.length} more</summary><ol class="turning">${others.map(item)}</ol></details>` : null}`;
}
