// What the network sees and answers, for people who debug the observation of their game.

import { html, useEffect, useRef, useState } from "/static/vendor/htm-preact.js";
import { get } from "/static/api.js";

export function NetworkView({ moves, step, ready, why }) {
  const [open, setOpen] = useState(false), [found, setFound] = useState(null), [error, setError] = useState("");
  useEffect(() => {
    setFound(null);
    setError("");
    if (!open || !ready) return undefined;
    let left = false;
    get("inspect", { moves, step }).then((view) => left || setFound(view), (problem) => left || setError(problem.message));
    return () => { left = true; };
  }, [open, ready, moves, step]);
  return html`<section class="card" aria-label="Network">
    <details onToggle=${(event) => setOpen(event.target.open)}>
      <summary>What the network sees</summary>
      ${why ? html`<p class="dim">${why}</p>` : null}
      ${error ? html`<p class="warning">${error}</p>` : null}
      ${found ? html`
        <p>Without a search: win ${percent(found.wdl[0])}, draw ${percent(found.wdl[1])}, loss ${percent(found.wdl[2])} for the player to move.</p>
        <p>Policy: ${found.policy.slice(0, 12).map(([name, share]) => `${name} ${percent(share)}`).join(", ")}</p>
        <div class="planes">${found.planes.map((plane, i) => html`<${Plane} plane=${plane} number=${i} />`)}</div>` : null}
    </details>
  </section>`;
}

const percent = (share) => `${Math.round(100 * share)} %`;

function Plane({ plane: read, number }) {
  const plane = read[0].length === 1 ? [read.flat()] : read;  // a column, such as a track, as a row
  const canvas = useRef(null), flat = plane.flat(), side = Math.min(22, Math.max(8, 110 / plane[0].length));
  const low = Math.min(0, ...flat), high = Math.max(1, ...flat), set = flat.filter((value) => value !== 0).length;
  useEffect(() => {
    const pen = canvas.current.getContext("2d");
    plane.forEach((row, y) => row.forEach((value, x) => {
      const light = Math.round((255 * (value - low)) / (high - low));
      pen.fillStyle = `rgb(${light} ${light} ${light})`;
      pen.fillRect(x, y, 1, 1);
    }));
  }, [read]);
  return html`<figure><canvas ref=${canvas} width=${plane[0].length} height=${plane.length} role="img" style=${{ width: `${side * plane[0].length}px` }}
    aria-label=${`Plane ${number}: ${set} of ${flat.length} numbers are not 0`}></canvas>
    <figcaption>plane ${number}, largest value ${Math.max(...flat)}</figcaption></figure>`;
}
