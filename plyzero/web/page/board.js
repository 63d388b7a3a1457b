// The board: clicks on its cells become moves, and what a search has found is drawn above it.

import { html, useEffect, useRef, useState } from "/static/vendor/htm-preact.js";

const SENTENCE = /(\p{L}{2,}[,;:.]? ){2}\p{L}{2,}/u;  // three words: a line to be wrapped, and not part of a drawing
const SVG = "http://www.w3.org/2000/svg";

// position: as /api/position answers. drawing: what draw() below takes. onMove is called with the name of a move.
export function BoardView({ position, canMove, drawing, onMove }) {
  const here = `${position.moves.join(" ")} ${position.at}`;  // the same where one position is described again
  const [pick, setPick] = useState({ here, cells: [] });
  const picked = pick.here === here ? pick.cells : [];
  const setPicked = (cells) => setPick({ here, cells });
  const place = useRef(null), latest = useRef(null);
  latest.current = tap;  // effects run later than the next click may come
  const legal = canMove ? position.legal : [];
  const fits = legal.filter((move) => picked.every((cell, i) => move.path[i] === cell));

  useEffect(() => {
    if (!place.current || !position.svg) return;
    const focused = document.activeElement?.dataset?.cell;
    place.current.innerHTML = position.svg;
    if (focused) place.current.querySelector(`[data-cell="${CSS.escape(focused)}"]`)?.focus();
  }, [position.svg]);

  useEffect(() => {
    const next = new Set(fits.map((move) => move.path[picked.length]));
    const cells = [...(place.current?.querySelectorAll("[data-cell]") ?? [])];
    let stop = cells.find((cell) => cell === document.activeElement);
    for (const cell of cells) {
      const name = cell.dataset.cell.toLowerCase();
      const playable = next.has(name) || legal.some((move) => move.path[0] === name);
      cell.classList.toggle("playable", playable);
      cell.classList.toggle("picked", picked.includes(name));
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", `${cell.dataset.cell}${describe(cell)}${picked.includes(name) ? ", chosen" : ""}`);
      cell.setAttribute("aria-disabled", String(!playable));
      if (playable) stop ??= cell;
      cell.tabIndex = -1;
      cell.onclick = () => latest.current(name);
    }
    stop ??= cells[0];
    if (stop) stop.tabIndex = 0;
  });

  useEffect(() => {
    const picture = place.current?.querySelector("svg.board");
    if (picture) draw(picture, drawing);
  }, [position.svg, drawing]);

  function tap(name) {
    if (!canMove) return;
    const begun = [...picked, name];
    const possible = legal.filter((move) => begun.every((cell, i) => move.path[i] === cell));
    if (!possible.length) return setPicked(picked.length && legal.some((move) => move.path[0] === name) ? [name] : []);
    if (possible.length === 1 && possible[0].path.length === begun.length) onMove(possible[0].name);
    else setPicked(begun);
  }

  function onKeyDown(event) {
    const cell = event.target.closest("[data-cell]");
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (cell && step) {
      event.preventDefault();
      neighbour(place.current, cell, step)?.focus();
    } else if (cell && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      tap(cell.dataset.cell.toLowerCase());
    } else if (event.key === "Escape") setPicked([]);
  }

  const choices = picked.length ? fits.filter((move) => move.path.length === picked.length) : [];
  const others = legal.filter((move) => !move.path.length);
  return html`<div class="picture">
    ${position.svg ? html`<div ref=${place} onKeyDown=${onKeyDown}></div>` : html`
      <pre tabindex="0" role="region" aria-label="Position">${position.text.split("\n").map((line) =>
        html`<div class=${SENTENCE.test(line) ? "sentence" : ""}>${line || " "}</div>`)}</pre>
      <p class="dim">Give the game render() to click on its board.</p>`}
    ${position.svg && (choices.length || others.length)
      ? html`<div class="row" role="group" aria-label="Further moves">
          ${[...choices, ...others].map((move) => html`<button onClick=${() => onMove(move.name)}>${move.name}</button>`)}
        </div>`
      : null}
  </div>`;
}

function describe(cell) {
  if (cell.querySelector(".stone.p0")) return ", first player";
  if (cell.querySelector(".stone.p1")) return ", second player";
  const figure = cell.querySelector(".figure");
  if (figure) return `, ${figure.textContent}`;
  if (cell.querySelector(".taken")) return ", drawn";
  return cell.querySelector(".spot") ? ", dot" : ", empty";
}

function centre(cell) {
  const box = cell.getBBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

// The cell next to one in a direction: the nearest of those that lie more in that direction than beside it.
function neighbour(place, cell, [dx, dy]) {
  const [x, y] = centre(cell);
  let nearest = null, least = Infinity;
  for (const other of place.querySelectorAll("[data-cell]")) {
    const [ox, oy] = centre(other);
    const along = (ox - x) * dx + (oy - y) * dy, beside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
    if (along > 1 && along + beside < least && beside <= along) [nearest, least] = [other, along + beside];
  }
  return nearest;
}

// drawing: {shares: [{spots, share, label}]} as circles and arrows, or {line: [{by, spots}]} as numbered stones.
function draw(picture, drawing) {
  picture.querySelector(".overlay")?.remove();
  if (!drawing) return;
  const layer = picture.appendChild(document.createElementNS(SVG, "g"));
  layer.setAttribute("class", "overlay");
  layer.setAttribute("aria-hidden", "true");
  (drawing.shares ?? []).forEach(({ spots, share, label }, rank) => {
    if (spots.length === 1 && share > 0.005) {
      const [x, y] = spots[0];
      add(layer, "circle", { class: "heat", cx: x, cy: y, r: 6 + 11 * Math.sqrt(share), "fill-opacity": 0.3 + 0.5 * share });
      write(layer, x, y, label);
    } else if (spots.length > 1 && share > 0.02 && rank < 4) arrow(layer, spots, 2 + 7 * Math.sqrt(share), label);
  });
  (drawing.line ?? []).forEach(({ by, spots }, i) => {
    if (spots.length === 1) {
      const [x, y] = spots[0];
      add(layer, "circle", { class: `ghost p${by}`, cx: x, cy: y, r: 14 });
      write(layer, x, y, i + 1);
    } else if (spots.length > 1) arrow(layer, spots, 4, i + 1);
  });
}

function arrow(layer, spots, width, label) {
  const [x0, y0] = spots.at(-2), [x1, y1] = spots.at(-1);
  const length = Math.hypot(x1 - x0, y1 - y0) || 1, ux = (x1 - x0) / length, uy = (y1 - y0) / length;
  const tip = 6 + width, path = [...spots.slice(0, -1), [x1 - tip * ux, y1 - tip * uy]];
  add(layer, "polyline", { class: "arrow", points: path.map((point) => point.join()).join(" "), "stroke-width": width });
  const side = [x1 - tip * ux, y1 - tip * uy], half = 3 + width / 2;
  const corners = [[x1, y1], [side[0] - half * uy, side[1] + half * ux], [side[0] + half * uy, side[1] - half * ux]];
  add(layer, "polygon", { class: "tip", points: corners.map((point) => point.join()).join(" ") });
  write(layer, (spots[0][0] + x1) / 2, (spots[0][1] + y1) / 2, label);
}

function write(layer, x, y, text) {
  add(layer, "text", { x, y }).textContent = text;
}

function add(layer, name, attributes) {
  const element = layer.appendChild(document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
