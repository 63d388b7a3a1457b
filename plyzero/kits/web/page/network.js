// What the network sees and answers, for people who debug the observation of their game.

import { html, useEffect, useRef, useState } from "./html.js";
import { get } from "./api.js";
import { capital, sideName } from "./status.js";

export function NetworkView({ asked, position, ready, why }) {
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
      ${found && position ? html`<${Seen} found=${found} hasBoard=${Boolean(position.svg)} named=${(side) => sideName(position.colours, side)} />` : null}
    </details>
  </section>`;
}

const percent = (share) => `${Math.round(100 * share)} %`;

export function leads(lead) {
  const points = Math.abs(lead).toFixed(1);
  return points === "0.0" ? "is level" : `${lead < 0 ? "trails" : "leads"} by ${points} points`;
}

// "Black has 2.2 points more than White": of a number of cells, which is above 0 if player 0 has more of them.
export function more(lead, cells, named) {
  const [most, least] = lead < 0 ? [1, 0] : [0, 1], number = Math.abs(lead).toFixed(1);
  return number === "0.0" ? `${named(0)} and ${named(1)} have equally many ${cells}` : `${named(most)} has ${number} ${cells} more than ${named(least)}`;
}

function Seen({ found, hasBoard, named }) {
  const { wdl: [win, draw, loss], lead, board, policy, planes, places, toPlay } = found, mover = named(toPlay);
  const results = [`wins ${percent(win)}`, ...(draw >= 0.02 ? [`draws ${percent(draw)}`] : []), `loses ${percent(loss)}`];
  return html`
    <p>Without a search it expects that ${mover} ${results.join(", ")}${lead === null ? "" : ` and ${leads(lead)} on average`}.</p>
    <p>The moves that it prefers: ${policy.slice(0, 12).filter(([, share], i) => !i || share >= 0.005).map(([name, share]) => `${name} ${percent(share)}`).join(", ")}.</p>
    ${board ? html`<p>The final board that it expects, blue for ${named(0)} and orange for ${named(1)}:</p>
      <div class="planes">${board.map((plane, i) => html`<${Expected} ...${{ plane, places, named, toPlay }} number=${board.length > 1 ? i : null} />`)}</div>` : null}
    <${Input} planes=${planes} places=${places} hasBoard=${hasBoard} mover=${mover} />`;
}

const IN_A_ROW = 24;  // numbers of an input that is no board

function Input({ planes, places, hasBoard, mover }) {
  const numbers = planes.flat(2);
  if (numbers.length === planes.length) {
    const rows = Array.from({ length: Math.ceil(numbers.length / IN_A_ROW) }, (_, i) => numbers.slice(IN_A_ROW * i, IN_A_ROW * (i + 1)));
    return html`<p>Its input, the ${numbers.length} numbers of observe(), seen by ${mover}: ${IN_A_ROW} in a row, the first at the upper left. A dark square is a 0.</p>
      <div class="planes"><${Plane} plane=${rows} name="all numbers" /></div>`;
  }
  const unknown = hasBoard && !places ? " None of the planes shows the pieces, so these pictures may be turned: the first row is at the top." : "";
  return html`<p>Its input, one picture for each plane of observe(), seen by ${mover}. A dark square is a 0.${unknown}</p>
    <div class="planes">${planes.map((plane, i) => html`<${Plane} plane=${plane} places=${places} name=${`plane ${i}`} />`)}</div>`;
}

const WIDE = 10;  // pixels of a number in a picture

// The places of numbers in a picture, in pixels: those on the board, or else rows and columns; a column, such as a track, is
// drawn as a row.
function pixelsOf(plane, places) {
  if (!places) return plane.map((row, y) => row.map((_, x) => (row.length === 1 ? [WIDE * y, 0] : [WIDE * x, WIDE * y])));
  const xs = places.flat().map(([x]) => x), ys = places.flat().map(([, y]) => y), left = Math.min(...xs), top = Math.min(...ys);
  const [first, next = first] = [...places[0], ...(places[1] ?? [])];  // two neighbours
  const apart = Math.hypot(next[0] - first[0], next[1] - first[1]) || 1;
  return places.map((row) => row.map(([x, y]) => [(WIDE * (x - left)) / apart, (WIDE * (y - top)) / apart]));
}

// A plane of numbers as a picture, as the board is drawn; colour returns the red, green and blue of a number.
function Picture({ plane, places, colour, label, caption }) {
  const canvas = useRef(null), pixels = pixelsOf(plane, places);
  const [width, height] = [0, 1].map((axis) => WIDE + Math.max(...pixels.flat().map((pixel) => Math.round(pixel[axis]))));
  const side = Math.min(22, Math.max(8, (110 * WIDE) / width));
  useEffect(() => {
    const pen = canvas.current.getContext("2d");
    pen.clearRect(0, 0, width, height);
    for (const [row, values] of plane.entries()) {
      for (const [column, value] of values.entries()) {
        pen.fillStyle = `rgb(${colour(value).map(Math.round).join(" ")})`;
        pen.fillRect(...pixels[row][column].map(Math.round), WIDE, WIDE);
      }
    }
  }, [plane, places]);
  return html`<figure><canvas ref=${canvas} width=${width} height=${height} role="img" style=${{ width: `${(side * width) / WIDE}px` }}
    aria-label=${label}></canvas><figcaption>${caption}</figcaption></figure>`;
}

function Expected({ plane, places, named, toPlay, number }) {
  const sum = plane.flat().reduce((total, value) => total + value, 0);
  const words = `${number === null ? "" : `plane ${number}: `}${more(toPlay ? -sum : sum, "places", named)}`;
  const ofFirst = (value) => (toPlay ? -value : value);
  const mixed = (value) => (ofFirst(value) < 0 ? [217, 119, 6] : [37, 99, 235]).map((light) => Math.abs(value) * light + (1 - Math.abs(value)) * 235);
  return html`<${Picture} plane=${plane} places=${places} colour=${mixed} caption=${words} label=${`Expected final board, ${words}`} />`;
}

function Plane({ plane, places, name }) {
  const flat = plane.flat(), low = Math.min(0, ...flat), high = Math.max(1, ...flat), set = flat.filter((value) => value !== 0).length;
  const grey = (value) => Array(3).fill((255 * (value - low)) / (high - low));
  const words = set ? `largest value ${Number(Math.max(...flat).toPrecision(3))}` : "all values are 0";
  return html`<${Picture} plane=${plane} places=${places} colour=${grey} caption=${`${name}, ${words}`}
    label=${`${capital(name)}: ${set} of ${flat.length} numbers are not 0`} />`;
}
