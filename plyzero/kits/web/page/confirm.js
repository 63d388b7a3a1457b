// A button for what cannot be taken back: the first click asks, the second one does it.

import { html, useState } from "./html.js";

export function Confirm({ name, question, disabled, onConfirm }) {
  const [asks, setAsks] = useState(false);
  function click() {
    setAsks(!asks);
    if (asks) onConfirm();
  }
  return html`<button disabled=${disabled} onBlur=${() => setAsks(false)} onClick=${click}>${asks ? question : name}</button>`;
}
