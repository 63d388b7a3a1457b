// What is drawn above a board: marks, arrows, numbered stones, a frame. All places are in units of the picture.

export const PIECES = ".stone, .figure, .wall, .mark";

const SVG = "http://www.w3.org/2000/svg";

// drawing: {turn: [spots] of the last turn, marks: [{spot, kind}], and {shares: [{spots, share, label}]} as circles and
// arrows, or {line: [{by, spots}]} as numbered stones, or {owned: [x, y, value]} as squares of the player who is expected to
// have the cell, 0 for a value above 0}, all of which may be missing.
// A card has no place, so its spot is null.
export function draw(picture, { turn = [], marks = [], shares = [], line = [], owned = [] }) {
  picture.querySelector(".overlay:not(.framing)")?.remove();
  turn = turn.map(placed);
  shares = shares.map(({ spots, ...other }) => ({ spots: placed(spots), ...other }));
  line = line.map(({ spots, ...other }) => ({ spots: placed(spots), ...other }));
  const layer = add(picture, "g", { class: "overlay", "aria-hidden": "true" });
  for (const [x, y, value] of owned) own(layer, x, y, value);
  for (const [[cx, cy]] of turn.filter((spots) => spots.length === 1)) add(layer, "circle", { class: "placed", cx, cy, r: 4.5 });
  for (const each of new Set(marks.map(({ spot, kind }) => [...spot, kind].join()))) {  // several moves may go to one place
    const [cx, cy, kind] = each.split(",");
    add(layer, "circle", { class: kind, cx, cy, r: kind === "pick" ? 17 : 6 });
  }
  shares.forEach(({ spots, share, label }, rank) => {
    if (spots.length === 1 && share > 0.005) {
      const [x, y] = spots[0];
      add(layer, "circle", { class: "heat", cx: x, cy: y, r: 6 + 11 * Math.sqrt(share), "fill-opacity": 0.3 + 0.5 * share });
      write(layer, x, y, label);
    } else if (spots.length > 1 && share > 0.02 && rank < 4) arrow(layer, spots, 2 + 7 * Math.sqrt(share), label);
  });
  line.forEach(({ by, spots }, i) => {
    if (spots.length === 1) {
      ghost(layer, spots[0], by);
      write(layer, ...spots[0], i + 1);
    } else if (spots.length > 1) arrow(layer, spots, 4, i + 1);
  });
}

// Draw the piece of a cell once more, above all others, and return this drawing, which follows the pointer.
export function lift(cell) {
  const layer = add(cell.closest("svg"), "g", { class: "dragged", "aria-hidden": "true" });
  for (const part of cell.querySelectorAll(PIECES)) layer.append(part.cloneNode(true));
  return layer;
}

const placed = (spots) => spots.filter((spot) => spot !== null);

// Draw a frame above all cells around one of them. added: [{spot, by}] of the pieces that a click on it adds.
export function drawFrame(picture, cell, added) {
  picture.querySelector(".framing")?.remove();
  const shape = cell?.querySelector(".area, .spot");
  if (!shape) return;
  const layer = add(picture, "g", { class: "overlay framing", "aria-hidden": "true" });
  layer.append(shape.cloneNode());
  layer.firstChild.setAttribute("class", "frame");
  for (const { spot, by } of added) ghost(layer, spot, by);
}

// What a move of player `by` places there: a wall on an edge, and elsewhere a stone.
function ghost(layer, [cx, cy], by) {
  const edge = edgeAt(layer.closest("svg"), cx, cy);
  if (!edge) return add(layer, "circle", { class: `ghost p${by}`, cx, cy, r: 14 });
  const wall = layer.appendChild(edge.cloneNode());
  wall.setAttribute("class", `ghost p${by}`);
  return wall;
}

function edgeAt(picture, x, y) {
  return [...picture.querySelectorAll(".bar-h .area, .bar-v .area")].find((area) => {
    const box = area.getBBox();
    return Math.abs(box.x + box.width / 2 - x) < 1 && Math.abs(box.y + box.height / 2 - y) < 1;
  });
}

const MAX_OWNED = 22, LEAST_OWNED = 0.05;  // the width of the square of a certain owner; smaller values are nobody's

function own(layer, x, y, value) {
  const strength = Math.abs(value), width = MAX_OWNED * Math.sqrt(strength), half = width / 2;
  if (strength < LEAST_OWNED) return;
  add(layer, "rect", { class: `owner p${value > 0 ? 0 : 1}`, x: x - half, y: y - half, width, height: width, opacity: 0.3 + 0.7 * strength });
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
