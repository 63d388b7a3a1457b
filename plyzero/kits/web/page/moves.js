// The moves of a game, to walk through them, and the curve of its expected result. A step is a position that is shown.

import { html } from "./html.js";

const PIPS = ["4", "08", "048", "0268", "02468", "023568"]; // places of the pips of a die, row by row

// A roll such as 3 or 5-3 as dice, and any other by its name.
export function Roll({ name }) {
  if (!/^[1-6](-[1-6])*$/.test(name)) return name;
  return html`<span class="roll" role="img" aria-label=${name}>${name.split("-").map((number) => html`<svg class="board" viewBox="0 0 30 30">
    <rect class="die" x="1" y="1" width="28" height="28" rx="5" />
    ${[...PIPS[number - 1]].map((at) => html`<circle class="pip" r="3" cx=${7 + 8 * (at % 3)} cy=${7 + 8 * Math.floor(at / 3)} />`)}</svg>`)}</span>`;
}

// entries: of moves, with the `number` and the `step` that follows, and perhaps a `mistake` and a `note`; of variations, with
// `onFollow` and `onDelete`; and of rolls, the `name` and perhaps what it gave, as `luck` and in words as `about`.
export function Moves({ entries, step, last, onShow }) {
  return html`<div class="row" role="group" aria-label="Show an earlier position">
      <button disabled=${step <= 0} onClick=${() => onShow(0)} aria-label="First position">«</button>
      <button disabled=${step <= 0} onClick=${() => onShow(step - 1)} aria-label="One move back">‹</button>
      <button disabled=${step >= last} onClick=${() => onShow(step + 1)} aria-label="One move forward">›</button>
      <button disabled=${step >= last} onClick=${() => onShow(last)} aria-label="Last position">»</button>
      <span class="dim">position ${Math.max(0, step)} of ${last}</span>
    </div>
    <ol class="moves" aria-label="Moves">${entries.map((entry) => {
      if (entry.onFollow) return html`<${Variation} ...${entry} />`;
      if (entry.number === undefined) return html`<li class="rolled" title=${entry.about}><${Roll} name=${entry.name} />${entry.luck ? html` <small>${entry.luck}</small>` : null}</li>`;
      return html`<${Move} ...${entry} isShown=${entry.step === step} onClick=${() => onShow(entry.step)} />`;
    })}</ol>`;
}

function Move({ name, number, mistake, note, isShown, onClick }) {
  return html`<li><button aria-pressed=${isShown} class=${mistake ?? ""} aria-label=${`Move ${number}, ${name}${mistake ? `, ${mistake}` : ""}`} onClick=${onClick}>
    <small>${number}.</small> ${name}${note ? html`<span title=${note}> ✎</span>` : null}</button></li>`;
}

function Variation({ name, onFollow, onDelete }) {
  return html`<li class="variation">
    <button title="Make this line the main one" aria-label=${`Variation ${name}`} onClick=${onFollow}>${name}</button>
    <button aria-label=${`Delete the variation ${name}`} onClick=${onDelete}>×</button></li>`;
}

// scores: at each step the expected score of the first player or, with the unit "points", the expected points; null or
// undefined where it is not known. withoutLuck: the same without what rolls gave, if there were any. label: in words.
export function Graph({ scores, withoutLuck, step, onShow, unit = "score", label = "Expected score of the first player" }) {
  const last = Math.max(1, scores.length - 1), left = 28, width = 300 - left - 4, isScore = unit === "score";
  const knownOf = (values) => values.map((value, i) => [i, value]).filter(([, value]) => typeof value === "number");
  const known = knownOf(scores), other = withoutLuck && knownOf(withoutLuck), all = [...known, ...(other ?? [])].map(([, value]) => value);
  const most = Math.ceil(Math.max(1, ...all.map(Math.abs)));
  const [low, high] = isScore ? [Math.min(0, ...all), Math.max(1, ...all)] : [-most, most], ticks = isScore ? [1, 0.5, 0] : [most, 0, -most];
  const x = (i) => left + (width * i) / last, y = (value) => 95 - (90 * (value - low)) / (high - low);
  const number = (value) => (isScore ? Math.round(100 * value) : value.toFixed(1)), points = (values) => values.map(([i, value]) => `${x(i)},${y(value)}`).join(" ");
  function choose(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const i = Math.round(((300 * (event.clientX - box.left)) / box.width - left) / width * last);
    onShow(Math.min(scores.length - 1, Math.max(0, i)));
  }
  return html`<svg class="graph" viewBox="0 0 300 112" role="img" onClick=${choose}
      aria-label=${`${label}: ${known.map(([, value]) => number(value)).join(" ")} ${isScore ? "percent" : "points"}`}>
    ${ticks.map((value) => html`<path class="middle" d=${`M${left} ${y(value)}H300`} /><text class="end" x=${left - 3} y=${y(value) + 3}>${isScore ? `${100 * value} %` : value}</text>`)}
    <text x=${left} y="108">start</text><text class="end" x="300" y="108">position ${scores.length - 1}</text>
    ${other ? html`<polyline class="dashed" points=${points(other)} />` : null}
    <polyline points=${points(known)} />
    ${step >= 0 ? html`<path class="here" d=${`M${x(step)} 0V100`} />` : null}
  </svg>
  ${other ? html`<p class="dim legend"><svg viewBox="0 0 24 6"><path d="M0 3H24" /></svg> as played; ${""}
    <svg viewBox="0 0 24 6"><path class="dashed" d="M0 3H24" /></svg> without luck: if each roll had given what is expected</p>` : null}
  <p class="dim">${label}, move by move. Click to see a position.</p>`;
}
