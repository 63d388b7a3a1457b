// Clocks of people: the texts that describe one, the choice of one, and the time of both sides of a game at this page.

import { html, useEffect, useRef, useState } from "./html.js";

const CLOCK = /^(\d{1,6}(?:\.\d{1,6})?)([hms])?(?:\+(\d{1,6}(?:\.\d{1,6})?)s?)?$/;
const CHOICES = ["", "1m", "3m+2s", "5m+3s", "10m+5s"];

// The clock that a text describes, as --clock does: {main, increment} in seconds; null if it describes none.
export function parseClock(text) {
  const [, number, unit, increment] = CLOCK.exec(text) ?? [];
  const main = Number(number) * ({ h: 3600, m: 60 }[unit] ?? 1);
  return main > 0 ? { main, increment: Number(increment ?? 0) } : null;
}

// The time that both sides of a game have left, in seconds; null without a clock.
export function timeLeft({ clock, left }) {
  const { main } = parseClock(clock) ?? {};
  return left ?? (main ? [main, main] : null);
}

export function timeText(seconds) {
  const tenths = Math.floor(10 * Math.max(0, seconds) + 1e-6);
  if (tenths < 100) return (tenths / 10).toFixed(1);
  const whole = Math.floor(tenths / 10);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

// Keeps the clocks of the people at this page in game.left. That of the player to move runs from the first move on; a turn
// adds the increment; who runs out of time loses. position: of the last move, null while another one is shown or it is asked
// for. isOver: whether the game has ended. clockOf(side): what ClockFace takes, null for a bot and without a clock.
export function useClocks({ game, position, players, isOver, change }) {
  const [turn, setTurn] = useState(null), ended = useRef(null);
  const isOn = Boolean(game.clock) && !game.shared, all = game.moves.join(" ");
  const isLive = Boolean(position);

  function add(side, seconds) {
    change((now) => ({ left: timeLeft(now).map((left, each) => Math.round(1000 * (each === side ? Math.max(0, left + seconds) : left)) / 1000) }));
  }

  useEffect(() => {
    if (!isOn) {
      if (turn) setTurn(null);
      return;
    }
    if (turn && (turn.all !== all || isOver || players[turn.side] !== "you")) {
      if (game.moves.length) add(turn.side, (turn.since - Date.now()) / 1000);  // otherwise it is another game
      ended.current = { side: turn.side, moves: turn.moves };
      setTurn(null);
    } else if (!turn && isLive && !isOver) {
      const side = position.toPlay, before = ended.current;
      if (before && before.side !== side && game.moves.length > before.moves) add(before.side, parseClock(game.clock).increment);
      ended.current = null;
      if (players[side] === "you" && position.movers.some((by) => by !== null)) setTurn({ side, since: Date.now(), all, moves: game.moves.length });
    }
  }, [isOn, isLive, isOver, all, turn, ...players]);

  useEffect(() => {
    if (!turn || !isOn) return undefined;
    const { side, since } = turn;
    let timer;
    const look = () => {
      const rest = 1000 * timeLeft(game)[side] - (Date.now() - since);
      if (rest > 0) timer = setTimeout(look, Math.min(rest, 1000));
      else change((now) => ({ resigned: side, timeOver: true, at: now.moves.length }));
    };
    look();
    return () => clearTimeout(timer);
  }, [turn, isOn, game.left]);

  const times = timeLeft(game);
  return { clockOf: (side) => (times && players[side] === "you" ? { left: times[side], since: turn?.side === side ? turn.since : null } : null) };
}

// The time of a player. left: in seconds. since: when the clock began to run, by Date.now(); null while it stands.
export function ClockFace({ left, since, label }) {
  const [, setNow] = useState(0);
  useEffect(() => {
    if (since === null) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 100);
    return () => clearInterval(timer);
  }, [since]);
  const spent = since === null ? 0 : (Date.now() - since) / 1000;
  return html`<span class=${`clock ${since === null ? "" : "runs"}`} role="timer" aria-label=${label}>${timeText(left - spent)}</span>`;
}

// The choice of a clock for a new game. onChange is called with its text, "" = none.
export function ClockChoice({ clock, isLater, onChange }) {
  const [own, setOwn] = useState(CHOICES.includes(clock) ? null : clock);
  const isWrong = own !== null && own !== "" && !parseClock(own);
  function choose(text) {
    setOwn(text === "own" ? clock : null);
    if (text !== "own") onChange(text);
  }
  function type(text) {
    setOwn(text);
    if (parseClock(text)) onChange(text);
  }
  return html`<div class="row">
    <span class="pair"><label for="clock">Clock</label>
      <select id="clock" value=${own === null ? clock : "own"} onChange=${(event) => choose(event.target.value)}>
        ${CHOICES.map((each) => html`<option value=${each}>${each || "none"}</option>`)}
        <option value="own">own</option>
      </select></span>
    ${own === null ? null : html`<input size="8" aria-label="Own clock" placeholder="5m+3s" value=${own} onInput=${(event) => type(event.target.value)} />`}
    ${isWrong ? html`<span class="warning" role="alert">Expected a clock, such as 5m+3s with 3 s more after each turn.</span>` : null}
    ${isLater && !isWrong ? html`<span class="dim">from the next game on</span>` : null}
  </div>`;
}
