// The review of a game: its turning points, and a curve of the expected result.

import { html, useState } from "/static/vendor/htm-preact.js";
import { stream } from "/static/api.js";
import { Graph, Moves } from "/static/moves.js";
import { ahead } from "/static/network.js";
import { stepsOf } from "/static/status.js";

const STRENGTHS = [256, 1024, 4096], TURNING_POINTS = 3;

export function reviewGame(fields, setReview, setError) {
  setReview({ searched: 0, all: 0 });
  return stream("review", fields, (event) => {
    setReview(event.done ? event : { searched: event.done_of[0], all: event.done_of[1] });
  }, (problem) => { setReview(null); setError(problem); });
}

export function Review({ review, game, position, why, onShow, onFollow, onReview }) {
  const [simulations, setSimulations] = useState(1024);
  const { moves, at } = game, { movers } = position;
  const steps = stepsOf(movers), step = steps.indexOf(at);
  const numbers = numbersOf(movers), plies = review?.plies;
  const forks = game.lines.map((line) => ({ line, from: line.findIndex((name, i) => name !== moves[i]) })).filter(({ from }) => from >= 0);
  const entries = moves.map((name, i) => movers[i] === null ? { name }
    : { name, number: numbers[i], step: steps.findIndex((each) => each > i), mistake: plies?.[i]?.mistake });
  for (const { line, from } of forks.sort((one, other) => other.from - one.from)) {
    const rest = line.slice(from);
    entries.splice(from + 1, 0, { name: `${rest.slice(0, 4).join(" ")}${rest.length > 4 ? " …" : ""}`, onFollow: () => onFollow(line, from + 1) });
  }
  return html`<section class="card" aria-label="Game">
    <h2>Game</h2>
    <${Moves} entries=${entries} step=${step} last=${steps.length - 1} onShow=${(next) => onShow(steps[next])} />
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
      <${Mistakes} plies=${plies} moves=${moves} numbers=${numbers} onShow=${onShow} />
      <${Graph} scores=${steps.map((ply) => plies[ply]?.winrate)} step=${step} onShow=${(next) => onShow(steps[next])} />
      ${plies[at]?.lead === undefined || plies[at].lead === null ? null
        : html`<p>Here the first player is ${ahead(plies[at].lead)}.</p>`}
      <p>Accuracy: first player ${accuracy(review, 0)}, second player ${accuracy(review, 1)}.</p>
      <p class="dim">${review.judge}</p>` : null}
  </section>`;
}

// Of each move its number among the moves; rolls have none.
function numbersOf(movers) {
  let count = 0;
  return movers.map((by) => (by === null ? null : ++count));
}

const points = (lost) => `${Math.round(100 * lost)} points of 100`;
const accuracy = (review, player) => (review.accuracy[player] === null ? "has not moved" : `${review.accuracy[player]} %`);

// The move that would have been better in the position that is shown, as a drawing; null if what was played lost little.
export function betterMove(plies, position) {
  const judged = plies?.[position.at], best = judged?.mistake && position.legal.find(({ name }) => name === judged.best);
  return best ? { line: [{ by: position.toPlay, spots: best.spots }] } : null;
}

function Mistakes({ plies, moves, numbers, onShow }) {
  const found = plies.map((ply, i) => ({ ...ply, i })).filter((ply) => ply.mistake).sort((a, b) => b.lost - a.lost);
  if (!found.length) return html`<p>No move has lost 10 points of 100 or more.</p>`;
  const item = ({ i, by, mistake, lost, best }) => html`<li>
    <button onClick=${() => onShow(i)}>Move ${numbers[i]}</button> ${moves[i]} by the ${by ? "second" : "first"} player: ${mistake},
    lost ${points(lost)}; better: <b>${best}</b></li>`;
  const others = found.slice(TURNING_POINTS);
  return html`<h3>${found.length > 1 ? "Turning points" : "Turning point"}</h3>
    <ol class="turning">${found.slice(0, TURNING_POINTS).map(item)}</ol>
    ${others.length ? html`<details><summary>${others.length} more</summary><ol class="turning">${others.map(item)}</ol></details>` : null}`;
}
