// The panel of the rules: their text and, once it is open, the first moves and how random games end.

import { html, useState } from "/static/html.js";
import { get } from "/static/api.js";
import { PositionText } from "/static/board.js";

export function Rules({ text }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  function load({ currentTarget }) {
    if (currentTarget.open && !found) get("ends").then(setFound, (problem) => setError(problem.message));
  }
  return html`<details class="rules" onToggle=${load}>
    <summary>Rules</summary>
    ${text ? html`<p>${text}</p>` : null}
    ${found ? html`
      ${found.firstMoves.map((sentence) => html`<p>${sentence}</p>`)}
      <p>How random games end, the most common way first. Each picture is the end of the shortest such game:</p>
      <div class="ends">${found.ends.map((end) => html`<${End} ...${end} />`)}</div>`
    : error ? html`<p class="warning" role="alert">${error}</p>` : html`<p class="dim">Random games are being played, to show how they end.</p>`}
  </details>`;
}

function End({ svg, text, caption }) {
  return html`<figure>
    ${svg ? html`<div dangerouslySetInnerHTML=${{ __html: svg }}></div>` : html`<${PositionText} text=${text} />`}
    <figcaption>${caption.map((line) => html`<div>${line}</div>`)}</figcaption>
  </figure>`;
}
