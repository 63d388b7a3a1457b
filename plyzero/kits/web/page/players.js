// The players, above and below the board, and the expected result beside it.

import { html } from "./html.js";
import { expected } from "./analysis.js";
import { ClockFace } from "./clock.js";
import { Roll } from "./moves.js";
import { capital, sideName, SIDES } from "./status.js";

// side: 0 or 1. name: of whoever has played it, if it is known. badge: "to move", "has won" or nothing. clock: what ClockFace takes, null without one. onChange is called with
// the id of another player. In a game in two places the players stay, and `isAway` is whether this one is not connected.
export function PlayerStrip({ about, position, side, player, name, badge, clock, isShared, isAway, onChange }) {
  const colour = position.colours?.[side] ?? "", label = `${capital(SIDES[side])} player${colour && `, ${colour}`}`;
  const chosen = about.players.find(({ id }) => id === player), strength = chosen?.name.includes(chosen.strength) ? "" : chosen?.strength;
  return html`<div class=${`player ${badge ? "lit" : ""}`}>
    ${colour ? html`<span class=${`piece p${side}`}></span>` : null}
    <span>${name ?? capital(colour || SIDES[side])}</span>
    ${isShared ? html`<b class="who">${player === "you" ? "You" : "Other player"}</b>` : html`<select aria-label=${label} value=${player} onChange=${(event) => onChange(event.target.value)}>
      <option value="you">You</option>
      ${about.players.map(({ id, name }) => html`<option value=${id}>${capital(name.replace(/^the /, ""))}</option>`)}
    </select>`}
    ${position.scoreboard.some(Boolean) ? html`<span class="scoreboard">${position.scoreboard[side]}</span>` : null}
    <span class="dim strength">${isAway ? "not connected" : strength ?? ""}</span>
    ${badge === "to move" ? html`<${LastRolls} position=${position} />` : null}
    ${badge ? html`<b>${badge}</b>` : null}
    ${clock ? html`<${ClockFace} ...${clock} label=${`Time of ${sideName(position.colours, side)}`} />` : null}
  </div>`;
}

// The last rolls of the player to move before the position that is shown, for boards on which no dice lie.
export function LastRolls({ position }) {
  const since = position.movers.slice(0, position.at).findLastIndex((by) => by !== null) + 1;
  if (/class="die"/.test(position.svg)) return null;
  const rolls = position.moves.slice(since, position.at).filter((_, i) => position.rollers[since + i] === position.toPlay);
  return rolls.map((name) => html`<${Roll} name=${name} />`);
}

// score: the expected score of the player below the board, whose number is `below`; null where it is not known.
export function Evaluation({ score, below, colours }) {
  const percent = Math.round(100 * score), known = score !== null;
  return html`<div class=${`evaluation ${known && colours ? `p${1 - below}` : ""}`} role="img"
      aria-label=${known ? `Expected score of ${sideName(colours, below)}: ${percent} percent` : "Nothing is known of the result"}>
    ${known ? html`<div class=${colours ? `p${below}` : "share"} style=${{ height: `${percent}%` }}></div><span>${percent}</span>` : null}
  </div>`;
}

// The expected score of the first player: by the rules, by the analysis, or by the review; null if nothing is known.
export function scoreOf({ position, found, plies }) {
  if (position.outcome) return position.outcome.winner === null ? 0.5 : 1 - position.outcome.winner;
  if (found?.rootInfo) return found.rootInfo.currentPlayer === 0 ? expected(found) : 1 - expected(found);
  return plies?.[position.at]?.winrate ?? null;
}
