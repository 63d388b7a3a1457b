// The review of a game: a curve of the expected result, and the mistakes by how much they lost.

import { html, useState } from "/static/vendor/htm-preact.js";
import { stream } from "/static/api.js";
import { stepsOf } from "/static/status.js";

const STRENGTHS = [256, 1024, 4096];

export function reviewGame(fields, setReview, setError) {
  setReview({ searched: 0, all: 0 });
  return stream("review", fields, (event) => {
    setReview(event.done ? event : { searched: event.done_of[0], all: event.done_of[1] });
  }, (problem) => { setReview(null); setError(problem); });
}

export function Review({ review, game, position, why, onShow, onReview }) {
  const [better, setBetter] = useState(false), [simulations, setSimulations] = useState(256);
  const { moves, at } = game, { movers } = position;
  const steps = stepsOf(movers), step = steps.indexOf(at), last = steps.length - 1;
  const after = (ply) => steps.find((each) => each > ply);
  const numbers = numbersOf(movers), plies = review?.plies;
  const played = movers.slice(0, at).findLastIndex((by) => by !== null), judged = plies?.[played];
  return html`<section class="card" aria-label="Game">
    <h2>Game</h2>
    <div class="row" role="group" aria-label="Show an earlier position">
      <button disabled=${step <= 0} onClick=${() => onShow(steps[0])} aria-label="First position">«</button>
      <button disabled=${step <= 0} onClick=${() => onShow(steps[step - 1])} aria-label="One move back">‹</button>
      <button disabled=${step >= last} onClick=${() => onShow(steps[step + 1])} aria-label="One move forward">›</button>
      <button disabled=${step >= last} onClick=${() => onShow(steps[last])} aria-label="Last position">»</button>
      <span class="dim">position ${Math.max(0, step)} of ${last}</span>
    </div>
    <ol class="moves" aria-label="Moves">${moves.map((name, i) => movers[i] === null
      ? html`<li class="roll">${name}</li>`
      : html`<li><button aria-pressed=${i === played} class=${plies?.[i]?.mistake ?? ""} onClick=${() => onShow(after(i))}
          aria-label=${`Move ${numbers[i]}, ${name}${plies?.[i]?.mistake ? `, ${plies[i].mistake}` : ""}`}>${name}</button></li>`)}</ol>
    <div class="row">
      <button disabled=${!moves.length || Boolean(why) || (review && !plies)} title=${why} onClick=${() => onReview(simulations)}>Review the game</button>
      <span class="pair"><label for="strength">Simulations of a review</label>
        <select id="strength" value=${simulations} onChange=${(event) => setSimulations(Number(event.target.value))}>
          ${STRENGTHS.map((number) => html`<option value=${number}>${number}</option>`)}
        </select></span>
      ${review && !plies ? html`<span role="status">${review.searched} of ${review.all} positions searched</span>` : null}
      ${plies ? html`<button aria-pressed=${better} onClick=${() => setBetter(!better)}>Show better moves</button>` : null}
    </div>
    ${why ? html`<p class="dim">${why}</p>` : null}
    ${plies ? html`
      <${Graph} plies=${plies} steps=${steps} at=${at} onShow=${onShow} />
      <p>Accuracy: first player ${accuracy(review, 0)}, second player ${accuracy(review, 1)}.</p>
      ${judged?.mistake ? html`<p>${moves[played]}: ${judged.mistake}, lost ${points(judged.lost)}.
        ${better ? ` Better: ${judged.best}.` : ""}</p>` : null}
      <${Mistakes} plies=${plies} moves=${moves} numbers=${numbers} better=${better} onShow=${onShow} />` : null}
  </section>`;
}

// Of each move its number among the moves; rolls have none.
function numbersOf(movers) {
  let count = 0;
  return movers.map((by) => (by === null ? null : ++count));
}

const points = (lost) => `${Math.round(100 * lost)} points of 100`;
const accuracy = (review, player) => (review.accuracy[player] === null ? "has not moved" : `${review.accuracy[player]} %`);

function Graph({ plies, steps, at, onShow }) {
  const last = Math.max(1, steps.length - 1), left = 28, width = 300 - left - 4;
  const known = steps.map((ply, i) => [i, plies[ply]?.winrate]).filter(([, winrate]) => typeof winrate === "number");
  const x = (i) => left + (width * i) / last, y = (winrate) => 95 - 90 * winrate;
  function choose(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const i = Math.round(((300 * (event.clientX - box.left)) / box.width - left) / width * last);
    onShow(steps[Math.min(steps.length - 1, Math.max(0, i))]);
  }
  return html`<svg class="graph" viewBox="0 0 300 112" role="img" onClick=${choose}
      aria-label=${`Expected score of the first player: ${known.map(([, winrate]) => Math.round(100 * winrate)).join(" ")} percent`}>
    <path class="middle" d="M${left} 5H300M${left} 50H300M${left} 95H300" />
    ${[1, 0.5, 0].map((score) => html`<text class="end" x=${left - 3} y=${y(score) + 3}>${100 * score} %</text>`)}
    <text x=${left} y="108">start</text><text class="end" x="300" y="108">position ${steps.length - 1}</text>
    <polyline points=${known.map(([i, winrate]) => `${x(i)},${y(winrate)}`).join(" ")} />
    ${steps.includes(at) ? html`<path class="here" d=${`M${x(steps.indexOf(at))} 0V100`} />` : null}
  </svg>
  <p class="dim">Expected score of the first player, move by move. Click to see a position.</p>`;
}

function Mistakes({ plies, moves, numbers, better, onShow }) {
  const found = plies.map((ply, i) => ({ ...ply, i })).filter((ply) => ply.mistake).sort((a, b) => b.lost - a.lost);
  if (!found.length) return html`<p>No move has lost 10 points of 100 or more.</p>`;
  return html`<ul>${found.slice(0, 12).map(({ i, by, mistake, lost, best }) => html`<li>
    <button onClick=${() => onShow(i)}>Move ${numbers[i]}</button> ${moves[i]} by the ${by ? "second" : "first"} player: ${mistake},
    lost ${points(lost)}${better ? `; better: ${best}` : ""}</li>`)}</ul>`;
}
