// A game between two people in two places: the server keeps it, and both pages follow it by its events.

import { html, useEffect, useRef, useState } from "./html.js";
import { LOST, post, stream } from "./api.js";
import { Confirm } from "./confirm.js";
import { capital } from "./status.js";

export const SILENT = "No hints, analyses or reviews until this game is over.";
const RETRY_MS = 1000, SILENCE_MS = 40000, SEATS = "plyzero seats", MOST_SEATS = 50;
const ALONE = { shared: "", clock: "", first: "you", second: "you" };  // the same game at this page, where both sides may move
let seats = {};  // key of a game -> token of this browser's seat

// The tokens are kept by the browser, for a reload and for a tab that is opened anew. Some browsers keep nothing.
function readSeats() {
  try {
    seats = { ...seats, ...JSON.parse(localStorage.getItem(SEATS)) };
  } catch { /* those of this page are known */ }
  return seats;
}

function keepSeat(key, token) {
  seats = Object.fromEntries([...Object.entries(readSeats()).filter(([each]) => each !== key), [key, token]].slice(-MOST_SEATS));
  try {
    localStorage.setItem(SEATS, JSON.stringify(seats));
  } catch { /* this page has it */ }
}

// Resolves to the token of the seat in a game, which is taken if one is free; "" for those who watch.
async function seatIn(key) {
  if (!readSeats()[key]) {
    const { token } = await post("shared/join", { key });
    if (token) keepSeat(key, token);
  }
  return seats[key] ?? "";
}

// The game in two places that the page shows, whose key is game.shared. page: change, go, play and begin of the page's game,
// say, which tells a sentence, and onError.
// isOn: whether there is one. state, at, isLost, act, continueIn: as of useEvents. players: of both sides, by ids.
// isSilent: whether the judge is. isBehind: whether the page has not yet taken over what the server says.
// canMove: whether this page may play, if one of its players is to move; after the end everybody may try what could have been.
// choose(name): play a move. open(fields): open a new game. isAway(side): whether a player who has come is not connected.
// clockOf(side): what ClockFace takes, null without a clock.
export function useShared(game, page) {
  const events = useEvents(game.shared, {
    onNext: (key) => page.begin({ shared: key }, "The new game has begun."),
    onGone(sentence) {
      page.change({ ...ALONE, left: null });
      page.say(`${capital(sentence)}.`);
    },
    onError: page.onError,
  });
  const { state } = events, all = game.moves.join(" "), isOn = game.shared !== "";
  const [sent, setSent] = useState(null);  // the moves before a move that the server has not confirmed yet
  const isBehind = isOn && (all !== state?.moves.join(" ") || game.start !== state.start);

  useEffect(() => setSent(null), [all, game.shared]);

  useEffect(() => {
    if (!state) return;
    const { moves, start, resigned, timeOver, clock } = state;
    if (!isBehind && resigned === game.resigned && clock === game.clock) return;
    page.change((now) => ({ moves, start, resigned, timeOver, clock, left: null, at: now.at === now.moves.length ? moves.length : now.at }));
  }, [state, isBehind, game.resigned, game.clock]);

  async function choose(name) {
    if (state.over) return page.play(name, (fields) => page.go({ ...fields, ...ALONE }));
    page.onError("");
    setSent(all);
    if (!(await events.act("play", { move: name, at: game.at }))) setSent(null);
  }

  async function open(fields) {
    try {
      const { key, token } = await post("shared/open", fields);
      keepSeat(key, token);
      page.begin({ shared: key, start: fields.start });
    } catch (problem) {
      page.onError(problem.message);
    }
  }

  return {
    ...events, isOn, isBehind, choose, open,
    isSilent: isOn && !state?.over,
    players: [0, 1].map((side) => (state?.you === side ? "you" : "friend")),
    canMove: Boolean(state?.over ? !isBehind : state?.begun && game.at === game.moves.length && sent !== all),
    isAway: (side) => Boolean(state?.begun && !state.here[side]),
    clockOf: (side) => (state?.left ? { left: state.left[side], since: state.runs === side ? events.at : null } : null),
  };
}

// Follows the game with a key, "" = none, by its events. onNext is called with the key of the game that follows it, and onGone
// with a sentence if the server does not have the game. Returns {state, at, isLost, act, continueIn}: what the server says, when
// it has come, by Date.now(), whether the connection is lost, and functions that do something in the game and go to the next.
function useEvents(key, { onNext, onGone, onError }) {
  const [found, setFound] = useState(null), [isLost, setLost] = useState(false);
  const calls = useRef(null);
  calls.current = { onNext, onGone, onError };

  useEffect(() => {
    setFound(null);
    setLost(false);
    if (!key) return undefined;
    let close = () => {}, left = false, timer = null, before = null, wasLost = false;
    const again = (after) => { clearTimeout(timer); timer = setTimeout(open, after); };
    function lose() {
      wasLost = true;
      setLost(true);
      again(RETRY_MS);
    }
    function answer() {
      if (wasLost) calls.current.onError("");  // what else has said that the server does not answer
      wasLost = false;
      setLost(false);
    }
    function hear(state) {
      answer();
      setFound({ state, at: Date.now() });
      again(SILENCE_MS);
      if (state.next && before && !before.next) continueIn(state.next);
      before = state;
    }
    async function open() {
      close();
      try {
        const token = await seatIn(key);
        if (!left) close = stream("shared/follow", { key, token }, hear, (problem, event) => (event ? end(problem) : left || lose()));
      } catch (problem) {
        if (left) return;
        if (problem.cause === LOST) lose();
        else end(problem.message);
      }
    }
    function end(sentence) {
      clearTimeout(timer);
      if (left) return;
      answer();
      calls.current.onGone(sentence);
    }
    open();
    return () => { left = true; close(); clearTimeout(timer); };
  }, [key]);

  function continueIn(next) {
    if (readSeats()[key]) keepSeat(next, seats[key]);
    calls.current.onNext(next);
  }

  const act = (what, fields = {}) => post(`shared/${what}`, { key, token: seats[key] ?? "", ...fields }).catch(({ message }) => calls.current.onError(message));
  return { state: null, at: 0, ...(found?.state.key === key ? found : {}), isLost, act, continueIn };
}

// What is said of the game, and the link to it while the second player has not come.
export function SharedGame({ shared: { state, isLost } }) {
  if (isLost) return html`<p class="warning" role="alert">The connection to the server is lost; it is tried again.</p>`;
  if (!state) return html`<p class="dim">The game is asked for.</p>`;
  if (!state.begun) return html`<${Link} address=${`${location.origin}${location.pathname}#shared=${state.key}`} />`;
  if (state.over && !state.next && state.you !== null && state.offeredBy === 1 - state.you) return html`<p>The other player offers a new game, sides swapped.</p>`;
  return state.you === null && !state.over ? html`<p class="dim">Both seats are taken; you watch.</p>` : null;
}

function Link({ address }) {
  const field = useRef(null), [said, setSaid] = useState("");
  const isHere = /^(localhost|127\..*|\[::1\])$/.test(location.hostname);
  async function copy() {
    field.current.select();
    try {
      await navigator.clipboard.writeText(address);
      setSaid("The link was copied.");
    } catch {  // browsers copy only over HTTPS and from this machine
      setSaid("The link is selected; copy it.");
    }
  }
  return html`<div class="row">
      <input class="link" readonly ref=${field} aria-label="Link for the other player" value=${address} onFocus=${(event) => event.target.select()} />
      <button onClick=${copy}>Copy link</button>
      <span role="status">${said}</span>
    </div>
    ${isHere ? html`<p class="dim">This link works on this machine only. plyzero serve --host 0.0.0.0 lets others reach it by the address of this machine.</p>` : null}`;
}

// What can be done besides moves. onLeave: go to a game of one's own.
export function SharedButtons({ shared: { state, act, continueIn }, onLeave }) {
  const { you = null, begun, over, offeredBy = null, next } = state ?? {};
  const isPlayer = you !== null, isMine = offeredBy === you;
  return html`
    ${isPlayer && !over ? html`<${Confirm} name="Resign" question="Yes, resign" disabled=${!begun} onConfirm=${() => act("resign")} />` : null}
    ${isPlayer && over && !next ? html`<button disabled=${offeredBy !== null && isMine} onClick=${() => act("offer")}>
      ${offeredBy === null ? "Offer a new game, sides swapped" : isMine ? "A new game is offered" : "Accept a new game, sides swapped"}</button>` : null}
    ${next ? html`<button onClick=${() => continueIn(next)}>Go to the new game</button>` : null}
    <button onClick=${onLeave}>Leave this game</button>`;
}
