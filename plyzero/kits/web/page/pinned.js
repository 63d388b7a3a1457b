// The board on a narrow screen: it stays at the top, and becomes smaller, while one reads what stands below it.

import { html, useEffect, useRef } from "./html.js";

const SCROLLED = 60;  // pixels beyond the board's place, from which on it is smaller

// The children beside each other. What is above them scrolls away; the style sheet says where they stay and how high they are.
export function Pinned({ children }) {
  const place = useRef(null);
  useEffect(() => {
    const fit = () => shrink(place.current);
    fit();
    addEventListener("scroll", fit, { passive: true });
    addEventListener("resize", fit);
    return () => { removeEventListener("scroll", fit); removeEventListener("resize", fit); };
  }, []);
  return html`<div class="middle" ref=${place}>${children}</div>`;
}

// A margin takes the height that the board gives up, so that nothing below it moves.
function shrink(element) {
  const isPinned = getComputedStyle(element).position === "sticky";
  const isReading = isPinned && element.previousElementSibling.getBoundingClientRect().bottom < -SCROLLED;
  if (isReading === element.classList.contains("reading")) return;
  element.style.marginBottom = "";
  const before = element.offsetHeight;
  element.classList.toggle("reading", isReading);
  if (!isReading) return;
  const margin = Number.parseFloat(getComputedStyle(element).marginBottom);
  element.style.marginBottom = `${margin + before - element.offsetHeight}px`;
}
