// The moves of a game, to walk through them, and the curve of its expected result. A step is a position that is shown.

import { html } from "/static/vendor/htm-preact.js";

// entries: of moves, with the `number` and the `step` that follows, and perhaps a `mistake`; of variations, with `onFollow`;
// and of rolls, a `name` only.
export function Moves({ entries, step, last, onShow }) {
  const spoken = ({ name, number, mistake }) => `Move ${number}, ${name}${mistake ? `, ${mistake}` : ""}`;
  return html`<div class="row" role="group" aria-label="Show an earlier position">
      <button disabled=${step <= 0} onClick=${() => onShow(0)} aria-label="First position">«</button>
      <button disabled=${step <= 0} onClick=${() => onShow(step - 1)} aria-label="One move back">‹</button>
      <button disabled=${step >= last} onClick=${() => onShow(step + 1)} aria-label="One move forward">›</button>
      <button disabled=${step >= last} onClick=${() => onShow(last)} aria-label="Last position">»</button>
      <span class="dim">position ${Math.max(0, step)} of ${last}</span>
    </div>
    <ol class="moves" aria-label="Moves">${entries.map((entry) => entry.onFollow
      ? html`<li><button class="variation" aria-label=${`Variation ${entry.name}`} onClick=${entry.onFollow}>${entry.name}</button></li>`
      : entry.number === undefined
      ? html`<li class="roll">${entry.name}</li>`
      : html`<li><button aria-pressed=${entry.step === step} class=${entry.mistake ?? ""} onClick=${() => onShow(entry.step)}
          aria-label=${spoken(entry)}><small>${entry.number}.</small> ${entry.name}</button></li>`)}</ol>`;
}

// scores: at each step the expected score of the first player, null or undefined where it is not known.
export function Graph({ scores, step, onShow }) {
  const last = Math.max(1, scores.length - 1), left = 28, width = 300 - left - 4;
  const known = scores.map((score, i) => [i, score]).filter(([, score]) => typeof score === "number");
  const x = (i) => left + (width * i) / last, y = (score) => 95 - 90 * score;
  function choose(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const i = Math.round(((300 * (event.clientX - box.left)) / box.width - left) / width * last);
    onShow(Math.min(scores.length - 1, Math.max(0, i)));
  }
  return html`<svg class="graph" viewBox="0 0 300 112" role="img" onClick=${choose}
      aria-label=${`Expected score of the first player: ${known.map(([, score]) => Math.round(100 * score)).join(" ")} percent`}>
    <path class="middle" d="M${left} 5H300M${left} 50H300M${left} 95H300" />
    ${[1, 0.5, 0].map((score) => html`<text class="end" x=${left - 3} y=${y(score) + 3}>${100 * score} %</text>`)}
    <text x=${left} y="108">start</text><text class="end" x="300" y="108">position ${scores.length - 1}</text>
    <polyline points=${known.map(([i, score]) => `${x(i)},${y(score)}`).join(" ")} />
    ${step >= 0 ? html`<path class="here" d=${`M${x(step)} 0V100`} />` : null}
  </svg>
  <p class="dim">Expected score of the first player, move by move. Click to see a position.</p>`;
}
