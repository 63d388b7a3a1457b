// The review of a game: a curve of the expected result, and the mistakes by how much they lost.

import { html, useState } from "/static/vendor/htm-preact.js";
import { stream } from "/static/api.js";

export function reviewGame(fields, setReview, setError) {
  setReview({ searched: 0, of: 0 });
  return stream("review", fields, (event) => {
    setReview(event.done ? event : { searched: event.done_of[0], of: event.done_of[1] });
  }, (problem) => { setReview(null); setError(problem); });
}

export function Review({ review, game, position, ready, onShow, onReview }) {
  const [better, setBetter] = useState(false);
  const { moves, at } = game;
  const judged = review?.plies?.[at - 1];
  return html`<section class="card" aria-label="Game">
    <h2>Game</h2>
    <div class="row" role="group" aria-label="Show an earlier position">
      <button disabled=${at === 0} onClick=${() => onShow(0)} aria-label="First position">«</button>
      <button disabled=${at === 0} onClick=${() => onShow(at - 1)} aria-label="One move back">‹</button>
      <button disabled=${at >= moves.length} onClick=${() => onShow(at + 1)} aria-label="One move forward">›</button>
      <button disabled=${at >= moves.length} onClick=${() => onShow(moves.length)} aria-label="Last position">»</button>
      <span class="dim">position ${at} of ${moves.length}</span>
    </div>
    <ol class="moves" aria-label="Moves">${moves.map((name, i) => position?.movers[i] === null && i < at
      ? html`<li class="roll">${name}</li>`
      : html`<li><button aria-pressed=${i + 1 === at} class=${review?.plies?.[i]?.mistake ?? ""} onClick=${() => onShow(i + 1)}
          aria-label=${`Move ${i + 1}, ${name}${review?.plies?.[i]?.mistake ? `, ${review.plies[i].mistake}` : ""}`}>${name}</button></li>`)}</ol>
    <div class="row">
      <button disabled=${!moves.length || !ready || (review && !review.plies)} onClick=${onReview}>Review the game</button>
      ${review && !review.plies ? html`<span role="status">${review.searched} of ${review.of} positions searched</span>` : null}
      ${review?.plies ? html`<button aria-pressed=${better} onClick=${() => setBetter(!better)}>Show better moves</button>` : null}
    </div>
    ${review?.plies ? html`
      <${Graph} plies=${review.plies} at=${at} onShow=${onShow} />
      <p>Accuracy: first player ${accuracy(review, 0)}, second player ${accuracy(review, 1)}.</p>
      ${judged?.mistake ? html`<p>${moves[at - 1]}: ${judged.mistake}, lost ${points(judged.lost)}.
        ${better ? ` Better: ${judged.best}.` : ""}</p>` : null}
      <${Mistakes} plies=${review.plies} moves=${moves} better=${better} onShow=${onShow} />` : null}
  </section>`;
}

const points = (lost) => `${Math.round(100 * lost)} points of 100`;
const accuracy = (review, player) => (review.accuracy[player] === null ? "has not moved" : `${review.accuracy[player]} %`);

function Graph({ plies, at, onShow }) {
  const known = plies.map((ply, i) => [i, ply.winrate]).filter(([, winrate]) => winrate !== null);
  const x = (i) => (300 * i) / Math.max(1, plies.length - 1), y = (winrate) => 95 - 90 * winrate;
  function choose(event) {
    const box = event.currentTarget.getBoundingClientRect();
    onShow(Math.round(((event.clientX - box.left) / box.width) * (plies.length - 1)));
  }
  return html`<svg class="graph" viewBox="0 0 300 100" role="img" onClick=${choose}
      aria-label=${`Expected score of the first player: ${known.map(([, winrate]) => Math.round(100 * winrate)).join(" ")} percent`}>
    <path class="middle" d="M0 50H300" /><polyline points=${known.map(([i, winrate]) => `${x(i)},${y(winrate)}`).join(" ")} />
    <path class="here" d=${`M${x(at)} 0V100`} />
  </svg>
  <p class="dim">Expected score of the first player, move by move. Click to see a position.</p>`;
}

function Mistakes({ plies, moves, better, onShow }) {
  const found = plies.map((ply, i) => ({ ...ply, i })).filter((ply) => ply.mistake).sort((a, b) => b.lost - a.lost);
  if (!found.length) return html`<p>No mistakes were found.</p>`;
  return html`<ul>${found.slice(0, 12).map(({ i, by, mistake, lost, best }) => html`<li>
    <button onClick=${() => onShow(i)}>Move ${i + 1}</button> ${moves[i]} by the ${by ? "second" : "first"} player: ${mistake},
    lost ${points(lost)}${better ? `; better: ${best}` : ""}</li>`)}</ul>`;
}
