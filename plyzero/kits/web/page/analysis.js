// What a search finds while it runs: the expected result, and the moves with their shares.

import { html } from "/static/html.js";
import { leads } from "/static/network.js";
import { sideName } from "/static/status.js";

const STRENGTHS = [16, 64, 256, 1024, 4096];
const HEADS = [["move", "first the one that is played, then the others by visits", "text"], ["visits", "share of the simulations"],
  ["score", "expected score of the player to move, uncertain where visits are few"], ["policy", "what a network would learn from this search"],
  ["prior", "the policy before the search"], ["line", "what is expected to follow", "text"]];

export function Analysis({ state, onChange, position, why, onLine }) {
  const { on, found, mode, simulations } = state;
  return html`<section class="card" aria-label="Analysis">
    <div class="row">
      <h2>Analysis</h2>
      <button onClick=${() => onChange({ on: !on })}>${on ? "Stop" : "Start"}</button>
      <label for="simulations">Simulations</label>
      <select id="simulations" value=${simulations} onChange=${(event) => onChange({ simulations: Number(event.target.value) })}>
        ${STRENGTHS.map((number) => html`<option value=${number}>${number}</option>`)}
      </select>
    </div>
    ${why ? html`<p class="dim">${why}</p>` : null}
    ${on && position?.outcome ? html`<p class="dim">The game is over.</p>` : null}
    ${on && found?.rootInfo ? html`<${Found} found=${found} colours=${position.colours} mode=${mode} hasBoard=${Boolean(position?.svg)} onChange=${onChange} onLine=${onLine} />` : null}
  </section>`;
}

// The expected score of the player to move with the best move; the mean of all simulations has those of bad moves in it.
export const expected = (found) => found.moveInfos[0].winrate ?? found.rootInfo.winrate;

const within = (plies) => (plies === 1 ? ", in 1 move" : `, in at most ${plies} moves of both players`);

const WHY = { win: "the fastest win that is known", draw: "the draw that promised most", loss: "which resists longest" };

function Found({ found, colours, mode, hasBoard, onChange, onLine }) {
  const { currentPlayer, proven, pliesToEnd, scoreLead } = found.rootInfo, named = (side) => sideName(colours, side);
  const percent = (share) => (share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`);
  const total = found.moveInfos.reduce((sum, info) => sum + info.visits, 0) || 1;
  const score = expected(found), words = `${named(currentPlayer)}, to move, scores ${percent(score)} on average${scoreLead === undefined ? "" : ` and ${leads(scoreLead)}`}; ${named(1 - currentPlayer)} scores ${percent(1 - score)}`;
  const best = found.moveInfos[0], most = Math.max(...found.moveInfos.map(({ visits }) => visits));
  const equal = found.moveInfos.filter(({ visits, order }) => visits === best.visits && order), isShared = equal.length > 0, isByPolicy = equal.every(({ policy }) => policy < best.policy);
  const mostVisited = best.visits < most ? "the most visited move that is not proven to be worse"
    : isShared ? `of the most visited moves the one with the highest ${isByPolicy ? "policy" : "score"}` : "the most visited move";
  const why = pliesToEnd || proven === "draw" ? WHY[proven] : mostVisited;
  return html`
    <p>${words}${proven ? ` · proven ${proven} for the player to move${pliesToEnd ? within(pliesToEnd) : ""}` : ""} · ${found.simulations} of ${found.of} simulations</p>
    ${hasBoard ? html`<div class="row" role="group" aria-label="Show on the board">
      ${["policy", "visits", "line", "nothing"].map((each) =>
        html`<button aria-pressed=${mode === each} onClick=${() => onChange({ mode: each })}>${each}</button>`)}
    </div>` : null}
    ${found.judge ? html`<p class="dim">${found.judge}</p>` : null}
    <p>The search plays <b>${best.move}</b>, ${why}.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Moves"><table>
      <thead><tr>${HEADS.map(([name, about, kind]) => html`<th class=${kind} title=${about}>${name}</th>`)}</tr></thead>
      <tbody>${found.moveInfos.slice(0, 10).map((info) => html`
        <tr class=${info.order ? "" : "best"} onMouseEnter=${() => info.line && onLine({ line: info.line })} onMouseLeave=${() => onLine(null)}>
          <td class="text">${info.move}</td>
          <td>${Math.round((100 * info.visits) / total)} %</td>
          <td>${info.winrate === null ? "" : percent(info.winrate)}</td>
          <td>${percent(info.policy)}</td>
          <td>${percent(info.prior)}</td>
          <td class="text line">${info.line && hasBoard
            ? html`<button onFocus=${() => onLine({ line: info.line })} onBlur=${() => onLine(null)}>${info.pv.slice(0, 6).join(" ")}</button>`
            : info.pv.slice(0, 6).join(" ")}</td>
        </tr>`)}</tbody>
    </table></div>`;
}
