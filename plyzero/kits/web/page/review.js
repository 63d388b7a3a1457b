// The game: its moves, variations and comments, and its review.

import { html, useEffect, useState } from "./html.js";
import { stream } from "./api.js";
import { amount, entriesOf, Judged } from "./judged.js";
import { Moves } from "./moves.js";
import { leads } from "./network.js";
import { sideName, stepsOf } from "./status.js";

const STRENGTHS = [256, 1024, 4096];

export function reviewGame(fields, setReview, setError) {
  setReview({ progress: "The review begins." });
  return stream("review", fields, (event) => {
    setReview(event.done ? { ...event, simulations: fields.simulations } : { progress: progressOf(event) });
  }, (problem) => { setReview(null); setError(problem); });
}

function progressOf({ measuring, done_of }) {
  if (measuring) return `First, once for all reviews: what random moves lose in this game, ${measuring[0]} of ${measuring[1]} games.`;
  const [made, all] = done_of;
  return made < all ? `${made} of about ${all} simulations` : `${made} simulations; searching on where it is not clear`;
}

// Calls onJudged with a sentence on the move `name` in place of the one that a turn of a review has played at `at`, and
// whether it is good enough. The same judge reviews the turn with this move.
export function judgeRetry(review, turn, { at, name, moves, ...asked }, onJudged, onError) {
  const { unit, scale, simulations } = review, played = [...moves, name].join(" ");
  if (name === turn.best[at - turn.ply]) return onJudged(`Right: ${name}. Play it to go on from here.`, true);
  return stream("review", { ...asked, moves: played, since: turn.ply, simulations }, ({ done, turns }) => {
    if (!done) return;
    const { lost, margin } = turns[0], isRight = lost < scale.inaccuracy;
    onJudged(isRight ? `Right: ${name}. Play it to go on from here.` : `${name} loses ${amount(lost, unit, margin)}; try another move.`, isRight);
  }, onError);
}

export function Review({ review, game, position, why, onFollow, onDelete, onNote, onReview, onShow, ...others }) {
  const named = (side) => sideName(position.colours, side);
  const [simulations, setSimulations] = useState(STRENGTHS[0]);
  const { moves, at } = game, { movers } = position;
  const steps = stepsOf(movers), step = steps.indexOf(at);
  const isWaiting = Boolean(review?.progress), found = review?.plies ? review : null, hasNotes = Object.keys(game.notes).length > 0;
  const forks = game.lines.map((line) => ({ line, from: line.findIndex((name, i) => name !== moves[i]) })).filter(({ from }) => from >= 0);
  const names = moves.map((name, i) => (position.moves[i] === name ? position.written[i] : name));
  const entries = entriesOf({ moves: names, movers, steps, setup: position.setup, named, review: found, noteOf: (i) => hasNotes && game.notes[moves.slice(0, i + 1).join(" ")] });
  for (const { line, from } of forks.sort((one, other) => other.from - one.from)) {
    const rest = line.slice(from);
    entries.splice(from + 1, 0, { name: `${rest.slice(0, 4).join(" ")}${rest.length > 4 ? " …" : ""}`, onFollow: () => onFollow(line, from + 1), onDelete: () => onDelete(line) });
  }
  const lead = found?.unit === "score" ? found.plies[at]?.lead ?? null : null;
  return html`<section class="card" aria-label="Game">
    <h2>Game</h2>
    <${Moves} entries=${entries} step=${step} last=${steps.length - 1} onShow=${(next) => onShow(steps[next])} />
    <${Note} text=${game.notes[moves.slice(0, at).join(" ")] ?? ""} onNote=${onNote} />
    <div class="row">
      <button disabled=${!moves.length || Boolean(why) || isWaiting} title=${why} onClick=${() => onReview(simulations)}>Review the game</button>
      <span class="pair"><label for="strength">Simulations of a review</label>
        <select id="strength" value=${simulations} onChange=${(event) => setSimulations(Number(event.target.value))}>
          ${STRENGTHS.map((number) => html`<option value=${number}>${number}</option>`)}
        </select></span>
      ${isWaiting ? html`<span role="status">${review.progress}</span>` : null}
    </div>
    ${why ? html`<p class="dim">${why}</p>` : null}
    ${found ? html`<${Judged} review=${found} movers=${movers} steps=${steps} step=${step} named=${named} onShow=${onShow} ...${others} />` : null}
    ${lead === null ? null : html`<p>Here ${named(0)} ${leads(lead)}.</p>`}
  </section>`;
}

// The comment on the position that is shown. What is typed stays while a search changes the page.
function Note({ text, onNote }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  return html`<input class="note" maxlength="500" aria-label="Comment on this position" placeholder="Comment on this position"
    value=${typed} onInput=${(event) => setTyped(event.target.value)} onChange=${() => onNote(typed)} />`;
}
