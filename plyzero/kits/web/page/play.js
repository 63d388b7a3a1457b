// The page on which a game is played, analysed and reviewed.

import { html, render, useEffect, useMemo, useRef, useState } from "./html.js";
import { get, stream } from "./api.js";
import { BoardView } from "./board.js";
import { Evaluation, PlayerStrip, scoreOf } from "./players.js";
import { Analysis, drawingOf } from "./analysis.js";
import { ClockChoice, useClocks } from "./clock.js";
import { Confirm } from "./confirm.js";
import { useGame } from "./history.js";
import { SharedButtons, SharedGame, SILENT, useShared } from "./shared.js";
import { betterMove } from "./judged.js";
import { judgeRetry, Review, reviewGame } from "./review.js";
import { NetworkView } from "./network.js";
import { Records, SetUp } from "./files.js";
import { Pinned } from "./pinned.js";
import { Rules } from "./rules.js";
import { canSearch, capital, SIDES, statusOf, stepsOf } from "./status.js";

const titleOf = (game) => game.replace(/^[\w.:]*:/, "");  // of my_module:MyGame its class

// How far a key goes in the game; on the board the arrows go from cell to cell.
const KEYS = { ArrowLeft: -1, ArrowRight: 1 }, KEYS_ON_BOARD = { PageUp: -1, PageDown: 1, Home: -Infinity, End: Infinity };

function Page() {
  const [about, setAbout] = useState(null);
  const { game, change, go, play, follow, begin: beginGame } = useGame(about?.opponent);
  const [clock, setClock] = useState(game.clock);  // of the next new game
  const [position, setPosition] = useState(null);
  const [analysis, setAnalysis] = useState({ on: false, found: null, mode: "policy", simulations: 256 });
  const [review, setReview] = useState(null);
  const [said, setSaid] = useState({});
  const [error, setError] = useState("");
  const [hover, setHover] = useState(null);
  const [offer, setOffer] = useState(null);  // the moves after which the bot would resign

  const shared = useShared(game, { change, go, play, begin, say: (text) => say(text), onError: setError });
  const players = !about ? [] : shared.isOn ? shared.players : [game.first, game.second ?? about.opponent];
  const shown = game.moves.slice(0, game.at);
  const all = game.moves.join(" ");
  const asked = { moves: shown.join(" "), step: game.step, start: game.start };
  const live = game.at === game.moves.length;
  const over = position && (position.outcome || (live && game.resigned !== null));
  const mover = position && !over ? players[position.toPlay] : null;
  const canMove = Boolean(position && !over) && (shared.isOn ? shared.canMove && (shared.state.over || mover === "you") : mover === "you");
  const isReady = Boolean(about?.ready) && !shared.isSilent;  // for searches of the judge

  const hereOf = ({ moves, at, resigned }) => [...moves, at, resigned].join(" "), here = hereOf(game);
  const say = (text, retry, at = game.at) => setSaid({ text, retry, here: hereOf({ ...game, at }) });  // until something else is shown
  const retry = said.here === here ? said.retry : undefined;  // the turn of a review for which another one is sought

  useEffect(() => {
    const ask = () => document.hidden || get("about").then(setAbout, (problem) => setError(problem.message));
    ask();
    const timer = setInterval(ask, about?.ready && !about.hasRun ? 30000 : 2000);
    return () => clearInterval(timer);
  }, [about?.ready]);

  useEffect(() => {  // a game stays with its model until its players ask for the newest
    const isThere = game.step && (about?.steps?.includes(game.step) ?? true);
    if (about?.newest && !isThere) change({ step: String(about.newest) });
  }, [about?.newest, game.step]);

  useEffect(() => {
    if (about) document.title = `${titleOf(about.game)} · plyzero`;
  }, [about?.game]);

  useEffect(() => {
    if (shared.isBehind) return undefined;
    let left = false;
    setHover(null);
    get("position", { ...asked, moves: all, at: game.at }).then((found) => {
      if (left) return;
      setError("");
      setPosition(found);
      change((now) => (now.moves.join(" ") !== all || now.at !== game.at ? {}  // something else is to be shown by now
        : { moves: found.moves, at: live ? found.moves.length : found.at }));
    }, (problem) => left || setError(problem.message));
    return () => { left = true; };
  }, [all, game.at, game.start, shared.isBehind]);

  const settled = position && position.at === game.at && position.moves.join(" ") === all && !shared.isBehind;
  const clocks = useClocks({ game, position: settled && live ? position : null, players, isOver: Boolean(game.resigned !== null || (settled && live && position.outcome)), change });

  useEffect(() => {  // the bot's move
    if (!settled || !live || !mover || mover === "you" || mover === "friend" || !canSearch(about, mover)) return undefined;
    return stream("think", { ...asked, player: mover }, (event) => {
      if (!event.done) return;
      setOffer(event.hopeless ? [...shown, event.choice].join(" ") : null);
      play(event.choice, change);
    }, setError);
  }, [about?.ready, about?.playsMeanwhile, settled, position, mover, live]);

  useEffect(() => {  // the analysis
    setAnalysis((before) => ({ ...before, found: null }));
    if (!isReady || !settled || !analysis.on || position.outcome) return undefined;
    const fields = { ...asked, simulations: analysis.simulations };
    let close = () => {};
    const begin = () => {
      close();
      if (!document.hidden) {
        close = stream("think", fields, (found) => setAnalysis((before) => ({ ...before, found })), setError);
      }
    };
    begin();
    document.addEventListener("visibilitychange", begin);
    return () => { close(); document.removeEventListener("visibilitychange", begin); };
  }, [isReady, settled, position, analysis.on, analysis.simulations, game.step]);

  // Say why cells that were clicked begin no legal move.
  function explain(cells) {
    if (over || !position) return;
    if (!canMove) say("It is not your turn.");
    else get("why", { ...asked, cells: cells.join(" ") }).then(({ sentence }) => say(sentence), (problem) => setError(problem.message));
  }

  // A person's move: played or, where a mistake is retried, only judged.
  function choose(name) {
    if (!retry) return shared.isOn ? shared.choose(name) : play(name);
    say(`${name} is searched.`, retry);
    return judgeRetry(judged, retry, { ...asked, at: game.at, moves: shown, name }, (text, isRight) => say(text, isRight ? undefined : retry), setError);
  }

  const onKey = useRef(null);
  onKey.current = (event) => {  // effects run later than the next key may come
    if (event.key === "Enter" && canMove && position.legal.length === 1 && event.target === document.body) return choose(position.legal[0].name);
    const by = (event.target.closest("svg.board") ? KEYS_ON_BOARD : KEYS)[event.key], field = "input, select, textarea, [role=region]";
    if (!position || !by || event.ctrlKey || event.altKey || event.metaKey || event.target.closest(field)) return;
    event.preventDefault();
    const further = stepsOf(position.movers).filter((at) => (by < 0 ? at < game.at : at > game.at));
    const to = further.at(by === -1 || by === Infinity ? -1 : 0);
    if (to !== undefined) go({ at: to });  // also while the last move's position is still asked for
  };
  useEffect(() => {
    const listen = (event) => onKey.current(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);

  function undo() {
    const mine = players.map((player) => player === "you");
    const last = position.movers.findLastIndex((by) => by !== null && (mine[by] || !mine.includes(true)));
    if (last >= 0) go({ moves: game.moves.slice(0, last), at: last, resigned: null, timeOver: false, ...(game.timeOver && { clock: "", left: null }) });
  }

  function hint() {
    say("A hint is searched.");
    stream("think", { ...asked, simulations: 256 }, (event) => {
      if (!event.done) return;
      const best = event.moveInfos[0];
      setSaid({ text: `Hint: ${best.written[0]}.`, about: event.judge, here });
      setHover({ line: best.line ?? [] });
    }, setError);
  }

  // A clock applies to the next game, or to this one before its first move.
  function chooseClock(text) {
    setClock(text);
    if (position?.movers.every((by) => by === null)) change({ clock: text, left: null });
  }

  function newGame(swap) {
    const [first, second] = swap ? [players[1], players[0]] : players;
    begin({ first, second, start: game.start });
  }

  function begin(fields, text = game.moves.length ? "The browser's Back button shows the game before." : "") {
    const next = beginGame({ clock, ...fields });
    setSaid({ text, here: hereOf(next) });
  }

  function show(at) {
    setSaid({});
    go({ at });
    document.querySelector(".table")?.scrollIntoView({ block: "nearest" });
  }

  function setUp(start) {
    return get("position", { start }).then(() => begin({ start }));
  }

  const isSaid = Boolean(said.here === here && said.text);
  const isOffered = settled && live && canMove && offer !== null && all.startsWith(offer)
    && position.movers.slice(offer.split(" ").length).every((by) => by === null);
  const judged = review?.of === all ? review : null;
  const drawing = useMemo(() => hover ?? (analysis.on ? drawingOf(position, analysis) : settled && !retry ? betterMove(judged, position.at) : null),
    [hover, position, analysis, judged, settled, retry]);

  if (!about) return html`<main><p>${error || "Loading."}</p></main>`;
  const waits = shared.state && !shared.state.begun ? "Waiting for the other player to open the link." : "";
  const status = waits || (settled ? statusOf({ about, position, game, players }) : "");
  const why = shared.isSilent ? SILENT : about.ready ? null : `${capital(about.waitsFor)}.`;
  const canUndo = settled && live && !shared.isOn && position.movers.some((by) => by !== null && (players[by] === "you" || !players.includes("you")));
  const top = players[1] === "you" && players[0] !== "you" ? 0 : 1;  // a person sits below the board
  const score = settled ? scoreOf({ position, found: analysis.on ? analysis.found : null, plies: judged?.plies }) : null;
  const winner = !over ? null : position.outcome ? position.outcome.winner : 1 - game.resigned;
  const strip = (side) => html`<${PlayerStrip} about=${about} position=${position} side=${side} player=${players[side]} name=${game.names[side]}
    clock=${shared.isOn ? shared.clockOf(side) : clocks.clockOf(side)} isShared=${shared.isOn} isAway=${shared.isAway(side)}
    badge=${winner === side ? "has won" : !over && settled && position.toPlay === side ? "to move" : ""}
    onChange=${(player) => change({ [SIDES[side]]: player })} />`;
  const [, width, height] = /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(position?.svg ?? "") ?? [0, 1, 1];
  return html`
    <header>
      <h1>${titleOf(about.game)}</h1>
      ${about.hasHome ? html`<a href="../../">All games</a>` : null}
      ${about.hasRun ? html`<a href="run">The run</a>` : null}
      ${game.step ? html`<span class="dim">model of step ${game.step}</span>` : null}
    </header>
    <main style=${{ "--p0": position?.fills?.[0], "--p1": position?.fills?.[1] }}>
      ${position ? html`<section class=${position.svg ? "table" : ""} aria-label="Board" aria-busy=${String(!settled)} style=${{ "--ratio": width / height }}>
        ${strip(top)}
        <${Pinned}>
          <${Evaluation} score=${score === null || top ? score : 1 - score} below=${1 - top} colours=${position.colours} />
          <${BoardView} position=${position} canMove=${canMove} isTurned=${position.turns && !top} drawing=${drawing} onMove=${choose} onIllegal=${explain}
            previewOf=${(name) => get("preview", { ...asked, name })} />
        <//>
        ${strip(1 - top)}
      </section>` : html`<p>Loading.</p>`}
      <div>
        <section class="card" aria-label="Play">
          <p role="status" aria-live="polite" class="status">${isSaid ? `${said.text} ` : ""}${status}</p>
          ${isSaid ? html`<p class="toast" aria-hidden="true">${said.text}</p>` : null}
          ${shared.isOn ? html`<${SharedGame} shared=${shared} />` : null}
          ${error ? html`<p class="warning" role="alert">${error}</p>` : null}
          ${about.newest !== null && game.step && String(about.newest) !== game.step
            ? html`<p><button onClick=${() => change({ step: String(about.newest) })}>
                Use the newest model, of step ${about.newest}</button></p>` : null}
          <div class="row">
            <button disabled=${!canUndo} onClick=${undo} title=${shared.isOn ? "no move is taken back in a game in two places" : live ? null : "at the last position; another move here begins a variation"}>Undo</button>
            <button disabled=${!canMove || !isReady} title=${why} onClick=${hint}>Hint</button>
            ${shared.isOn ? html`<${SharedButtons} shared=${shared} onLeave=${() => begin({ shared: "" })} />` : html`
              <${Confirm} name="Resign" question="Yes, resign" disabled=${Boolean(over) || !players.includes("you")}
                onConfirm=${() => go({ at: game.moves.length, resigned: players[position.toPlay] === "you" ? position.toPlay : players.indexOf("you") })} />
              <button onClick=${() => newGame(false)}>New game</button>
              <button onClick=${() => newGame(true)}>New game, sides swapped</button>
              ${about.isStatic ? null : html`<button onClick=${() => shared.open({ side: 1 - top, start: game.start, clock })}>Play with a friend</button>`}`}
          </div>
          ${isOffered ? html`<p>The bot offers to resign. <button onClick=${() => go({ resigned: 1 - position.toPlay })}>Accept</button></p>` : null}
          ${isSaid && said.about ? html`<p class="dim">${said.about}</p>` : null}
          ${shared.isOn ? null : html`<${ClockChoice} clock=${clock} isLater=${clock !== game.clock} onChange=${chooseClock} />`}
          <${MoveEntry} position=${position} canMove=${canMove} onMove=${choose} />
          <${Rules} text=${about.rules} colours=${position?.colours} />
        </section>
        ${position ? html`<${Review} review=${judged} game=${game} position=${position} why=${why}
          onShow=${show} onFollow=${follow} onDelete=${(line) => go({ lines: game.lines.filter((each) => each !== line) })}
          retry=${retry} canRetry=${(by) => isReady && players[by] === "you"} onNote=${(text) => change({ notes: { ...game.notes, [asked.moves]: text } })}
          onRetry=${(turn, at) => {
            say(`Find a better move than ${position.written[at]}.`, turn, at);
            go({ at });
          }}
          onReview=${(simulations) => reviewGame({ ...asked, moves: all, simulations, ...(game.resigned === null ? {} : { resigned: game.resigned }) },
            (found) => setReview(found && { ...found, of: all }), setError)} />` : null}
        <${Analysis} state=${analysis} onChange=${(fields) => setAnalysis((before) => ({ ...before, ...fields }))}
          position=${position} why=${why} onLine=${setHover} />
        <section class="card" aria-label="Files">
          <${Records} about=${about} game=${shared.isOn ? { ...game, left: shared.state?.left } : game} position=${settled ? position : null} players=${players.map((each) => (each === "friend" ? "you" : each))} onLoad=${begin} onError=${setError} say=${say} />
          ${position && !about.isStatic ? html`<${SetUp} position=${position} onStart=${setUp} />` : null}
        </section>
        ${about.hasNetwork ? html`<${NetworkView} asked=${asked} position=${position} why=${why}
          ready=${isReady && settled && !position.outcome} />` : null}
      </div>
    </main>`;
}

// A field for moves, and the list of legal moves, which what is typed filters.
function MoveEntry({ position, canMove, onMove }) {
  const [text, setText] = useState("");
  const typed = text.trim(), lower = (word) => word.toLowerCase();
  const fits = (position?.legal ?? []).filter(({ name, written }) => [name, written].some((word) => lower(word).startsWith(lower(typed))));
  const [problem, setProblem] = useState("");
  function submit(event) {
    event.preventDefault();
    const exact = fits.find(({ written }) => written === typed) ?? fits.find(({ name }) => lower(name) === lower(typed)) ?? (fits.length === 1 ? fits[0] : null);
    setProblem(exact ? "" : `Expected a legal move, got ${typed || "nothing"}.`);
    if (exact) {
      setText("");
      onMove(exact.name);
    }
  }
  return html`<form class="row" onSubmit=${submit}>
      <label for="move">Move</label>
      <input id="move" autocomplete="off" size="10" value=${text} disabled=${!canMove} onInput=${(event) => setText(event.target.value)} />
      <button disabled=${!canMove}>Play</button>
      ${problem ? html`<span class="warning" role="alert">${problem}</span>` : null}
    </form>
    <details open=${Boolean(position && !position.svg)}>
      <summary>Legal moves${text ? ` that begin with ${text}` : ""}: ${fits.length}</summary>
      <div class="row">${fits.slice(0, 100).map(({ name, written }) => html`<button disabled=${!canMove} onClick=${() => onMove(name)}>${written}</button>`)}</div>
      ${fits.length > 100 ? html`<p class="dim">${fits.length - 100} more; type the beginning of a move.</p>` : null}
    </details>`;
}

render(html`<${Page} />`, document.getElementById("page"));
