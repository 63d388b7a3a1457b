// The moves of a game, to walk through them, and the curve of its expected result.

import { html } from "/static/vendor/htm-preact.js";

// names: of moves and rolls. rolls: which of these are rolls. mistakes: of each move its {mistake}, if any.
export function Moves({ names, at, onShow, rolls, mistakes }) {
  const mistake = (i) => mistakes?.[i]?.mistake;
  return html`<div class="row" role="group" aria-label="Show an earlier position">
      <button disabled=${at === 0} onClick=${() => onShow(0)} aria-label="First position">«</button>
      <button disabled=${at === 0} onClick=${() => onShow(at - 1)} aria-label="One move back">‹</button>
      <button disabled=${at >= names.length} onClick=${() => onShow(at + 1)} aria-label="One move forward">›</button>
      <button disabled=${at >= names.length} onClick=${() => onShow(names.length)} aria-label="Last position">»</button>
      <span class="dim">position ${at} of ${names.length}</span>
    </div>
    <ol class="moves" aria-label="Moves">${names.map((name, i) => rolls?.[i] && i < at
      ? html`<li class="roll">${name}</li>`
      : html`<li><button aria-pressed=${i + 1 === at} class=${mistake(i) ?? ""} onClick=${() => onShow(i + 1)}
          aria-label=${`Move ${i + 1}, ${name}${mistake(i) ? `, ${mistake(i)}` : ""}`}>${name}</button></li>`)}</ol>`;
}

// scores: of each position the expected score of the first player, null where it is not known.
export function Graph({ scores, at, onShow }) {
  const known = scores.map((score, i) => [i, score]).filter(([, score]) => score !== null);
  const x = (i) => (300 * i) / Math.max(1, scores.length - 1), y = (score) => 95 - 90 * score;
  function choose(event) {
    const box = event.currentTarget.getBoundingClientRect();
    onShow(Math.round(((event.clientX - box.left) / box.width) * (scores.length - 1)));
  }
  return html`<svg class="graph" viewBox="0 0 300 100" role="img" onClick=${choose}
      aria-label=${`Expected score of the first player: ${known.map(([, score]) => Math.round(100 * score)).join(" ")} percent`}>
    <path class="middle" d="M0 50H300" /><polyline points=${known.map(([i, score]) => `${x(i)},${y(score)}`).join(" ")} />
    <path class="here" d=${`M${x(at)} 0V100`} />
  </svg>
  <p class="dim">Expected score of the first player, move by move. Click to see a position.</p>`;
}
