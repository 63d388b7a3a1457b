// A recorded game to walk through, from the data in window.PLYZERO_REPORT; plyzero/kits/web/pages.py describes it.
import { html, render, useEffect, useMemo, useState } from "./html.js";
import { entriesOf, Judged } from "./judged.js";
import { Graph, Moves } from "./moves.js";
import { sideName, stepsOf } from "./status.js";

const { game, result, colours, frames, review } = window.PLYZERO_REPORT;
const named = (side) => sideName(colours, side);
const setup = frames[0].setup;
const moves = frames.flatMap(({ move, by, rolls }) => [...(by === null ? [] : [move]), ...rolls]);
const movers = frames.flatMap(({ by, rolls }) => [...(by === null ? [] : [by]), ...rolls.map(() => null)]);
if (setup) {
  moves.unshift(setup);
  movers.unshift(null);
}
const steps = stepsOf(movers), entries = entriesOf({ moves, movers, steps, setup, review, named });
const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

// The pictures of all positions: each is made of parts, of which few differ from those of the picture before.
function pictures() {
  const parts = [];
  return frames.map(({ size, parts: changed }) => {
    parts.length = size;
    for (const [place, part] of changed) parts[place] = part;
    return [...parts];
  });
}

function sentence({ move, by, rolls }, at) {
  const begun = setup ? `The beginning, ${setup}.` : "The beginning.";
  const moved = by === null ? begun : `Move ${at} by ${named(by)}: ${move}.`;
  const rolled = rolls.length ? ` Rolled: ${rolls.join(" ")}.` : "";
  return `${moved}${rolled}${at === frames.length - 1 ? ` ${result}` : ""}`;
}

function Page() {
  const last = frames.length - 1;
  const [at, setAt] = useState(last), drawn = useMemo(pictures, []);
  const show = (place) => setAt((before) => Math.min(last, Math.max(0, typeof place === "function" ? place(before) : place)));
  useEffect(() => {
    const onKey = (event) => {
      if (!(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      show((before) => before + KEYS[event.key]);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const picture = drawn[at].join("");
  return html`<header><h1>${game}</h1><span class="dim">${result}</span></header>
    <main>
      <section class="card" aria-label="Board">
        <div class="picture" dangerouslySetInnerHTML=${{ __html: picture }}></div>
        <p role="status" aria-live="polite">${sentence(frames[at], at)}</p>
      </section>
      <section class="card" aria-label="Game">
        <h2>Game</h2>
        <${Moves} entries=${entries} step=${at} last=${last} onShow=${show} />
        ${review ? html`<${Judged} review=${review} movers=${movers} steps=${steps} step=${at} named=${named} onShow=${(ply) => show(steps.indexOf(ply))} />`
        : frames.some(({ score }, i) => score !== null && i < last)
          ? html`<${Graph} scores=${frames.map(({ score }) => score)} step=${at} onShow=${show} />` : null}
        <p class="dim">The arrow keys walk through the game.</p>
      </section>
    </main>`;
}

document.title = `${game} · plyzero`;
render(html`<${Page} />`, document.getElementById("page"));
