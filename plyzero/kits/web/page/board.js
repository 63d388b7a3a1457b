// The board: clicks on its cells become moves, and what a search has found is drawn above it.

import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { draw, drawFrame, lift, PIECES } from "./overlay.js";

const SENTENCE = /(\p{L}{2,}[,;:.]? ){2}\p{L}{2,}/u;  // three words: a line to be wrapped, and not part of a drawing

// position: as /api/position answers. isTurned: whether it is seen from the other side. drawing: what draw() takes. onMove is called with the name of a move, onIllegal with
// the cells clicked where no legal move begins so. previewOf(name) resolves to the pieces that a move adds, as drawFrame takes them.
export function BoardView({ position, canMove, isTurned, drawing, onMove, onIllegal, previewOf }) {
  const here = `${position.moves.join(" ")} ${position.at}`;  // the same where one position is described again
  const [pick, setPick] = useState({ here, cells: [] });
  const picked = pick.here === here ? pick.cells : [];
  const setPicked = (cells) => setPick({ here, cells });
  const place = useRef(null), latest = useRef(null), pressed = useRef(null), framed = useRef(null);
  latest.current = tap;  // effects run later than the next click may come
  const legal = canMove ? position.legal : [], sign = isTurned ? -1 : 1;
  const fits = legal.filter((move) => begins(move, picked));
  const allCells = () => [...(place.current?.querySelectorAll("[data-cell]") ?? [])];
  const nameOf = (cell) => cell.dataset.cell.toLowerCase();

  // With the rest of the page, not after it: what is not busy shows its position.
  useLayoutEffect(() => {
    if (!place.current || !position.svg) return;
    const focused = allCells().indexOf(document.activeElement);
    place.current.innerHTML = position.svg;
    pressed.current = null;
    const cell = allCells()[focused];
    cell?.setAttribute("tabindex", "-1");  // without it a cell takes no focus
    cell?.focus();
  }, [position.svg]);

  useLayoutEffect(() => {
    const next = new Set(fits.map((move) => move.path[picked.length]));
    const cells = allCells();
    let stop = cells.find((cell) => cell === document.activeElement);
    for (const cell of cells) {
      const name = nameOf(cell);
      const playable = next.has(name) || legal.some((move) => move.path[0] === name);
      cell.classList.toggle("playable", playable);
      cell.classList.toggle("picked", picked.includes(name));
      cell.classList.toggle("lifts", canLift(name));
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", `${cell.dataset.cell}${describe(cell, position.colours)}${cell.dataset.mark ? `, ${cell.dataset.mark}` : ""}${picked.includes(name) ? ", chosen" : ""}`);
      cell.setAttribute("aria-disabled", String(!playable));
      if (playable) stop ??= cell;
      cell.tabIndex = -1;
      cell.onclick = () => latest.current(name);
    }
    stop ??= cells[0];
    if (stop) stop.tabIndex = 0;
  });

  useLayoutEffect(() => {
    const picture = place.current?.querySelector("svg.board");
    if (picture) draw(picture, { owned: position.territory, ...drawing, turn: position.turn, marks: marks() });
  }, [position.svg, drawing, canMove, picked.join(" ")]);

  // Where to draw marks: what can be picked, then where it can go; and cells to fill, if only few of the empty ones are.
  function marks() {
    const at = picked.length, further = fits.filter((move) => move.path.length > at);
    if (at || further.some((move) => move.path.length > 1)) {
      return further.filter((move) => move.spots[at]).map((move) => ({ spot: move.spots[at], kind: at ? "target" : "pick" }));
    }
    const marked = further.filter((move) => move.spots[0] && !isObvious(move.path[0]));
    return marked.map((move) => ({ spot: move.spots[0], kind: isFull(move.path[0]) ? "pick" : "target" }));
  }

  const isFull = (name) => allCells().some((cell) => nameOf(cell) === name && cell.querySelector(PIECES));
  const canLift = (name) => legal.some(({ path }) => path[0] === name && path.length > 1);

  // Whether nearly all empty cells like this one can be clicked, so that marks would only hide the board.
  function isObvious(name) {
    const cells = allCells(), isLike = alike(cells.find((cell) => nameOf(cell) === name));
    const empty = cells.filter((cell) => isLike(cell) && !cell.querySelector(".stone, .figure, .wall, .spot"));
    return empty.filter((cell) => cell.classList.contains("playable")).length >= 0.9 * empty.length;
  }

  // A frame around the cell below the pointer or with the focus, and a ghost of what a click on it places.
  function show({ type, target }) {
    const picture = place.current?.querySelector("svg.board");
    if (!picture) return;
    const cell = /out|leave/.test(type) ? null : target.closest("[data-cell]");
    const isFramed = cell && (type === "mouseover" ? cell.classList.contains("playable") : cell.matches(":focus-visible"));
    const [move, ...others] = isFramed && !picked.length ? legal.filter((each) => begins(each, [nameOf(cell)])) : [];
    const spot = move && !others.length && move.path.length === 1 ? move.spots[0] : null;
    framed.current = isFramed ? cell : null;
    drawFrame(picture, framed.current, spot ? [{ spot, by: position.toPlay }] : []);
    if (!spot || !isEdge(cell)) return;  // a wall may be longer than one edge
    previewOf(move.name).then((added) => framed.current === cell && drawFrame(picture, cell, added), () => {});
  }

  // What was picked is forgotten, as the same position may come again.
  function make(name) {
    setPicked([]);
    onMove(name);
  }

  function tap(name) {
    if (!canMove) return onIllegal([name]);
    const begun = [...picked, name];
    const possible = legal.filter((move) => begins(move, begun));
    if (!possible.length) {
      const isOther = picked.length && legal.some((move) => move.path[0] === name);
      setPicked(isOther && picked.at(-1) !== name ? [name] : []);
      return isOther ? undefined : onIllegal(begun);
    }
    if (possible.length === 1 && possible[0].path.length === begun.length) make(possible[0].name);
    else setPicked(begun);
  }

  // A piece is also moved by dragging, with a mouse or a finger, which then does not scroll the page.
  function onPointerDown({ target, clientX: x, clientY: y, button }) {
    const from = target.closest("[data-cell]");
    pressed.current = from && !button && canLift(nameOf(from)) ? { from, x, y } : null;
  }

  function onPointerMove({ pointerId, clientX, clientY }) {
    const drag = pressed.current;
    if (!drag) return;
    const right = clientX - drag.x, down = clientY - drag.y;
    if (!drag.piece) {
      if (Math.hypot(right, down) < 6) return;  // a click
      drag.piece = lift(drag.from);
      place.current.setPointerCapture(pointerId);
      setPicked([nameOf(drag.from)]);
    }
    const scale = Math.abs(drag.from.getScreenCTM().a) * sign;
    drag.from.classList.add("lifted");
    drag.piece.setAttribute("transform", `translate(${right / scale} ${down / scale})`);
  }

  function onPointerUp({ type, clientX, clientY }) {
    const { from, piece } = pressed.current ?? {};
    pressed.current = null;
    if (!piece) return;
    piece.remove();
    from.classList.remove("lifted");
    const to = type === "pointerup" && document.elementFromPoint(clientX, clientY)?.closest("[data-cell]");
    setPicked([]);
    if (!to || to === from || !place.current.contains(to)) return;
    const path = [from, to].map(nameOf), possible = legal.filter((move) => begins(move, path));
    if (possible.length === 1 && possible[0].path.length === 2) onMove(possible[0].name);
    else if (possible.length) setPicked(path);
    else onIllegal(path);
  }

  function onKeyDown(event) {
    const cell = event.target.closest("[data-cell]");
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (cell && step) {
      event.preventDefault();
      neighbour(place.current, cell, step.map((each) => sign * each))?.focus();
    } else if (cell && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (legal.length === 1) make(legal[0].name);
      else tap(nameOf(cell));
    } else if (event.key === "Escape") setPicked([]);
  }

  const choices = picked.length ? fits.filter((move) => move.path.length === picked.length) : [];
  const others = legal.filter((move) => !move.path.length);
  return html`<div class=${isTurned ? "picture turned" : "picture"}>
    ${position.faults.map((fault) => html`<p class="warning">${fault}</p>`)}
    ${position.svg ? html`<div ref=${place} onKeyDown=${onKeyDown} onfocusin=${show} onfocusout=${show} onMouseOver=${show}
        onMouseLeave=${show}
        onPointerDown=${onPointerDown} onPointerMove=${onPointerMove} onTouchMove=${(event) => pressed.current && event.preventDefault()} onPointerUp=${onPointerUp} onPointerCancel=${onPointerUp}></div>` : html`
      <${PositionText} text=${position.text} />
      ${position.faults.length ? null : html`<p class="dim">Give the game render() to click on its board.</p>`}`}
    ${position.svg && (choices.length || others.length)
      ? html`<div class="row" role="group" aria-label="Further moves">
          ${[...choices, ...others].map(({ name, written }) => html`<button onClick=${() => make(name)}>${written}</button>`)}
        </div>`
      : null}
  </div>`;
}

// A position without a board; a sentence in it is wrapped, and wide lines are scrolled.
export function PositionText({ text }) {
  return html`<pre tabindex="0" role="region" aria-label="Position">${text.split("\n").map((line) =>
    html`<div class=${SENTENCE.test(line) ? "sentence" : ""}>${line || " "}</div>`)}</pre>`;
}

// Returns whether a cell is an edge too, or none either.
const alike = (cell) => (other) => isEdge(other) === isEdge(cell);

const isEdge = (cell) => /\bbar-/.test(cell.getAttribute("class"));

const CHESSMEN = ["king", "queen", "rook", "bishop", "knight", "pawn"];  // readers of screens call all solid figures black

const begins = (move, path) => path.every((cell, i) => move.path[i] === cell);

function describe(cell, colours) {
  const figure = cell.querySelector(".figure, .mark"), text = figure?.textContent, words = text ? ` ${CHESSMEN["♚♛♜♝♞♟".indexOf(text[0])] ?? text}` : "";
  if (cell.querySelector(".p0")) return `, ${colours[0]}${words}`;
  if (cell.querySelector(".p1")) return `, ${colours[1]}${words}`;
  if (figure) return `,${words}`;
  if (cell.querySelector(".taken")) return ", wall";
  return cell.querySelector(".spot") ? ", dot" : ", empty";
}

function centre(cell) {
  const box = (cell.querySelector(".area, .spot") ?? cell).getBBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

// The cell next to one in a direction: the nearest of those that lie more in that direction than beside it. What lies
// beside it is farther, so that one walks from edge to edge, and on hexagons from row to row.
function neighbour(place, cell, [dx, dy]) {
  const [x, y] = centre(cell);
  let nearest = null, least = Infinity;
  for (const other of place.querySelectorAll("[data-cell]")) {
    const [ox, oy] = centre(other);
    const along = (ox - x) * dx + (oy - y) * dy, beside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
    const distance = along + 1.5 * beside;
    if (along > 1 && distance < least && beside <= along) [nearest, least] = [other, distance];
  }
  return nearest;
}
