// What the network sees and answers, for people who debug the observation of their game.

import { html, useEffect, useRef, useState } from "/static/html.js";
import { get } from "/static/api.js";

export function NetworkView({ asked, ready, why }) {
  const [open, setOpen] = useState(false), [found, setFound] = useState(null), [error, setError] = useState("");
  useEffect(() => {
    setFound(null);
    setError("");
    if (!open || !ready) return undefined;
    let left = false;
    get("inspect", asked).then((view) => left || setFound(view), (problem) => left || setError(problem.message));
    return () => { left = true; };
  }, [open, ready, ...Object.values(asked)]);
  return html`<section class="card" aria-label="Network">
    <details onToggle=${(event) => setOpen(event.target.open)}>
      <summary>What the network sees</summary>
      ${why ? html`<p class="dim">${why}</p>` : null}
      ${error ? html`<p class="warning">${error}</p>` : null}
      ${found ? html`
        <p>Without a search: win ${percent(found.wdl[0])}, draw ${percent(found.wdl[1])}, loss ${percent(found.wdl[2])} for the player to move.</p>
        ${found.lead === null ? null : html`<p>It expects that the player to move ${leads(found.lead)}.</p>`}
        ${found.board ? html`<p>The final board that it expects, blue for the player to move and orange for the other:</p>
          <div class="planes">${found.board.map((plane, i) => html`<${Expected} plane=${plane} number=${i} />`)}</div>` : null}
        <p>Policy: ${found.policy.slice(0, 12).map(([name, share]) => `${name} ${percent(share)}`).join(", ")}</p>
        <div class="planes">${found.planes.map((plane, i) => html`<${Plane} plane=${plane} number=${i} />`)}</div>` : null}
    </details>
  </section>`;
}

const percent = (share) => `${Math.round(100 * share)} %`;
export function leads(lead) {
  const points = Math.abs(lead).toFixed(1);
  return points === "0.0" ? "is level" : `${lead < 0 ? "trails" : "leads"} by ${points} points`;
}

// A plane of numbers as a picture; colour returns the red, green and blue of a number.
function Picture({ plane, colour, label, caption }) {
  const canvas = useRef(null), side = Math.min(22, Math.max(8, 110 / plane[0].length));
  useEffect(() => {
    const pen = canvas.current.getContext("2d");
    for (const [y, row] of plane.entries()) {
      for (const [x, value] of row.entries()) {
        pen.fillStyle = `rgb(${colour(value).map(Math.round).join(" ")})`;
        pen.fillRect(x, y, 1, 1);
      }
    }
  }, [plane]);
  return html`<figure><canvas ref=${canvas} width=${plane[0].length} height=${plane.length} role="img" style=${{ width: `${side * plane[0].length}px` }}
    aria-label=${label}></canvas><figcaption>${caption}</figcaption></figure>`;
}

function Expected({ plane, number }) {
  const sum = plane.flat().reduce((total, value) => total + value, 0), difference = `${sum < 0 ? "" : "+"}${sum.toFixed(1)}`;
  const mixed = (value) => (value < 0 ? [217, 119, 6] : [37, 99, 235]).map((light) => Math.abs(value) * light + (1 - Math.abs(value)) * 235);
  return html`<${Picture} plane=${plane} colour=${mixed} caption=${`plane ${number}: own less the other's, ${difference}`}
    label=${`Expected final board, plane ${number}: own less the other's, ${difference} for the player to move`} />`;
}

function Plane({ plane, number }) {
  const flat = plane.flat(), low = Math.min(0, ...flat), high = Math.max(1, ...flat), set = flat.filter((value) => value !== 0).length;
  const grey = (value) => Array(3).fill((255 * (value - low)) / (high - low));
  return html`<${Picture} plane=${plane[0].length === 1 ? [flat] : plane} colour=${grey} caption=${`plane ${number}, largest value ${Number(Math.max(...flat).toPrecision(3))}`}
    label=${`Plane ${number}: ${set} of ${flat.length} numbers are not 0`} />`;  // a column, such as a track, as a row
}
