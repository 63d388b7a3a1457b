// What a search finds while it runs: the expected result, and the moves with their shares.

import { html } from "./html.js";
import { leads, more } from "./network.js";
import { sideName } from "./status.js";

const STRENGTHS = [16, 64, 256, 1024, 4096];
const HEADS = [["move", "first the one that the search plays, then the others by visits", "text"], ["visits", "how often the search has tried the move, of all its tries"],
  ["score", "share of the games that the player to move wins after it, a draw being half a win; uncertain where visits are few"],
  ["policy", "how likely the move is to be the best, after the search; a network learns this"],
  ["prior", "the same before the search"], ["line", "what is expected to follow", "text"]];

export function Analysis({ state, onChange, position, why, onLine }) {
  const { on, found, mode, simulations } = state;
  return html`<section class="card" aria-label="Analysis">
    <div class="row">
      <h2>Analysis</h2>
      <button disabled=${Boolean(why) && !on} onClick=${() => onChange({ on: !on })}>${on ? "Stop" : "Start"}</button>
      <span class="pair"><label for="simulations">Simulations</label>
        <select id="simulations" value=${simulations} onChange=${(event) => onChange({ simulations: Number(event.target.value) })}>
          ${STRENGTHS.map((number) => html`<option value=${number}>${number}</option>`)}
        </select></span>
    </div>
    ${why ? html`<p class="dim">${why}</p>` : null}
    ${on && position?.outcome ? html`<p class="dim">The game is over.</p>` : null}
    ${on && found?.rootInfo ? html`<${Found} found=${found} position=${position} mode=${mode} onChange=${onChange} onLine=${onLine} />` : null}
  </section>`;
}

// The expected score of the player to move with the best move; the mean of all simulations has those of bad moves in it.
export const expected = (found) => found.moveInfos[0].winrate ?? found.rootInfo.winrate;

// What an analysis draws on the board: shares of visits or of the policy, the principal variation, or the final board.
export function drawingOf(position, { found, mode }) {
  if (!found?.moveInfos || !position || mode === "nothing") return null;
  if (mode === "line") return { line: found.moveInfos[0]?.line ?? [] };
  if (mode === FINAL_BOARD && found.finalBoard) return { owned: found.finalBoard.owned };
  const spots = new Map(position.legal.map((move) => [move.name, move.spots]));
  const together = new Map(), share = shareOf(found, mode);  // several moves may be one picture
  for (const info of found.moveInfos) {
    const key = String(spots.get(info.move) ?? []), before = together.get(key)?.share ?? 0;
    together.set(key, { spots: spots.get(info.move) ?? [], share: before + share(info) });
  }
  const shares = [...together.values()].map((each) => ({ ...each, label: Math.round(100 * each.share) }));
  return { shares: shares.sort((one, other) => other.share - one.share) };
}

const FEW_DRAWS = 0.02;  // a network expects a few even in games that know none
const FINAL_BOARD = "final board";

function shareOf(found, mode) {
  const visits = found.moveInfos.reduce((sum, info) => sum + info.visits, 0) || 1;
  return mode === "visits" ? (info) => info.visits / visits : (info) => info.policy;
}

const percent = (share) => (share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`);

function Found({ found, position, mode, onChange, onLine }) {
  const hasBoard = Boolean(position.svg), visited = shareOf(found, "visits");
  return html`
    <p>${resultOf(found, (side) => sideName(position.colours, side))} <span class="dim">${found.simulations} of ${found.of} simulations</span></p>
    ${hasBoard ? html`<${Shown} ...${{ found, position, mode, onChange }} />` : null}
    ${found.judge ? html`<p class="dim">${found.judge}</p>` : null}
    <p>The search plays <b>${found.moveInfos[0].written[0]}</b>. ${whyOf(found)}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Moves"><table>
      <thead><tr>${HEADS.map(([name, about, kind]) => html`<th class=${kind} title=${about}>${name}</th>`)}</tr></thead>
      <tbody>${found.moveInfos.slice(0, 10).map((info) => html`
        <tr class=${info.order ? "" : "best"} onMouseEnter=${() => info.line && onLine({ line: info.line })} onMouseLeave=${() => onLine(null)}>
          <td class="text">${info.written[0]}</td>
          <td>${percent(visited(info))}</td>
          <td>${info.winrate === null ? "" : percent(info.winrate)}</td>
          <td>${percent(info.policy)}</td>
          <td>${percent(info.prior)}</td>
          <td class="text line">${info.line && hasBoard
            ? html`<button onFocus=${() => onLine({ line: info.line })} onBlur=${() => onLine(null)}>${info.written.join(" ")}</button>`
            : info.written.join(" ")}</td>
        </tr>`)}</tbody>
    </table></div>
    <details><summary>The columns</summary><dl>${HEADS.map(([name, about]) => html`<dt>${name}</dt><dd>${about}</dd>`)}</dl></details>`;
}

// "Black wins 51 % and trails by 0.5 points on average.", and what is proven.
function resultOf(found, named) {
  const { currentPlayer, proven, pliesToEnd, scoreLead, drawrate } = found.rootInfo, mover = named(currentPlayer);
  const within = !pliesToEnd ? "" : pliesToEnd === 1 ? " in 1 move" : ` in at most ${pliesToEnd} moves of both players`;
  if (proven) return { win: `It is proven that ${mover} wins${within}.`, draw: "It is proven that best play is a draw.", loss: `It is proven that ${mover} loses${within}.` }[proven];
  const score = drawrate < FEW_DRAWS ? `wins ${percent(expected(found))}` : `scores ${percent(expected(found))} (a draw is half a win)`;
  return `${mover} ${score}${scoreLead === undefined ? "" : ` and ${leads(scoreLead)} on average`}.`;
}

// Why the search plays its move. Gumbel search plays one of the moves that it has tried most, and of these the one that the
// policy prefers, which has the scores of the search in it.
function whyOf({ moveInfos, rootInfo }) {
  const [best, ...others] = moveInfos, { proven, pliesToEnd } = rootInfo;
  if (proven === "draw") return "It keeps the draw.";
  if (proven === "win" && pliesToEnd) return "No faster win is known.";
  if (proven === "loss" && pliesToEnd) return "It resists longest.";
  if (best.visits < Math.max(...moveInfos.map(({ visits }) => visits))) return "What was tried more often is proven to be worse.";
  const equal = others.filter(({ visits }) => visits === best.visits);
  if (!equal.length) return "It was tried most often.";
  const names = equal.length > 3 ? ` and ${equal.length} others` : listed(equal.map(({ written }) => written[0]));
  return `It${names} were tried most often, and its ${equal.every(({ policy }) => policy < best.policy) ? "policy" : "score"} is the highest of these.`;
}

const listed = (names) => names.map((name, i) => (i === names.length - 1 ? ` and ${name}` : `, ${name}`)).join("");

// What is drawn on the board, and what of it cannot be drawn.
function Shown({ found, position, mode, onChange }) {
  const { finalBoard } = found, modes = ["policy", "visits", "line", ...(finalBoard ? [FINAL_BOARD] : []), "nothing"];
  const elsewhere = new Set(position.legal.filter(({ spots }) => !spots.some(Boolean)).map(({ name }) => name)), share = shareOf(found, mode);
  const hidden = mode === "policy" || mode === "visits" ? found.moveInfos.filter((info) => elsewhere.has(info.move) && share(info) >= 0.005) : [];
  return html`<div class="row" role="group" aria-label="Show on the board">
      ${modes.map((each) => html`<button aria-pressed=${mode === each} onClick=${() => onChange({ mode: each })}>${each}</button>`)}
    </div>
    ${hidden.length ? html`<p class="dim">Not on the board: ${hidden.slice(0, 4).map((info) => `${info.written[0]} ${percent(share(info))}`).join(", ")}.</p>` : null}
    ${mode === FINAL_BOARD && finalBoard ? html`<p>Counted on the board alone, without points such as komi, ${more(finalBoard.lead, finalBoard.cells, (side) => sideName(position.colours, side))} at the
      end. <span class="dim">The larger a square is, the surer the network is that its colour will have the place. It has not searched for this.</span></p>` : null}`;
}
