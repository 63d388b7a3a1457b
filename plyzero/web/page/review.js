// The review of a game: a curve of the expected result, and the mistakes by how much they lost.

import { html, useState } from "/static/vendor/htm-preact.js";
import { stream } from "/static/api.js";
import { Graph, Moves } from "/static/moves.js";

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
    <${Moves} names=${moves} at=${at} onShow=${onShow} mistakes=${review?.plies} rolls=${position?.movers.map((by) => by === null)} />
    <div class="row">
      <button disabled=${!moves.length || !ready || (review && !review.plies)} onClick=${onReview}>Review the game</button>
      ${review && !review.plies ? html`<span role="status">${review.searched} of ${review.of} positions searched</span>` : null}
      ${review?.plies ? html`<button aria-pressed=${better} onClick=${() => setBetter(!better)}>Show better moves</button>` : null}
    </div>
    ${review?.plies ? html`
      <${Graph} scores=${review.plies.map((ply) => ply.winrate)} at=${at} onShow=${onShow} />
      <p>Accuracy: first player ${accuracy(review, 0)}, second player ${accuracy(review, 1)}.</p>
      ${judged?.mistake ? html`<p>${moves[at - 1]}: ${judged.mistake}, lost ${points(judged.lost)}.
        ${better ? ` Better: ${judged.best}.` : ""}</p>` : null}
      <${Mistakes} plies=${review.plies} moves=${moves} better=${better} onShow=${onShow} />` : null}
  </section>`;
}

const points = (lost) => `${Math.round(100 * lost)} points of 100`;
const accuracy = (review, player) => (review.accuracy[player] === null ? "has not moved" : `${review.accuracy[player]} %`);

function Mistakes({ plies, moves, better, onShow }) {
  const found = plies.map((ply, i) => ({ ...ply, i })).filter((ply) => ply.mistake).sort((a, b) => b.lost - a.lost);
  if (!found.length) return html`<p>No mistakes were found.</p>`;
  return html`<ul>${found.slice(0, 12).map(({ i, by, mistake, lost, best }) => html`<li>
    <button onClick=${() => onShow(i)}>Move ${i + 1}</button> ${moves[i]} by the ${by ? "second" : "first"} player: ${mistake},
    lost ${points(lost)}${better ? `; better: ${best}` : ""}</li>`)}</ul>`;
}
