// The panel of the rules: their text and, once it is open, the first moves and how random games end.

import { html, useState } from "./html.js";
import { get } from "./api.js";
import { PositionText } from "./board.js";
import { sideName } from "./status.js";

export function Rules({ text, colours }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  function load({ currentTarget }) {
    if (currentTarget.open && !found) get("ends").then(setFound, (problem) => setError(problem.message));
  }
  return html`<details class="rules" onToggle=${load}>
    <summary>Rules</summary>
    ${text ? html`<p>${text}</p>` : null}
    ${found ? html`
      ${found.firstMoves.map((sentence) => html`<p>${named(sentence, colours)}</p>`)}
      <p>How random games end, the most common way first. Each picture is the end of the shortest such game:</p>
      <div class="ends">${found.ends.map((end) => html`<${End} ...${end} colours=${colours} />`)}</div>`
    : error ? html`<p class="warning" role="alert">${error}</p>` : html`<p class="dim">Random games are being played, to show how they end.</p>`}
  </details>`;
}

// A sentence about player 0 or 1 with the names that the page gives them.
const named = (sentence, colours) => sentence.replace(/\bplayer ([01])\b/g, (_, side) => sideName(colours, Number(side)));

function End({ svg, text, caption, colours }) {
  return html`<figure>
    ${svg ? html`<div dangerouslySetInnerHTML=${{ __html: svg }}></div>` : html`<${PositionText} text=${text} />`}
    <figcaption>${caption.map((line) => html`<div>${named(line, colours)}</div>`)}</figcaption>
  </figure>`;
}
