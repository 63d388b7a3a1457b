// The page on which a game is played, analysed and reviewed.

import { html, render, useEffect, useMemo, useRef, useState } from "/static/html.js";
import { get, readAddress, stream, writeAddress } from "/static/api.js";
import { BoardView } from "/static/board.js";
import { Evaluation, PlayerStrip, scoreOf } from "/static/players.js";
import { Analysis } from "/static/analysis.js";
import { betterMove } from "/static/judged.js";
import { judgeRetry, Review, reviewGame } from "/static/review.js";
import { NetworkView } from "/static/network.js";
import { Records, SetUp } from "/static/files.js";
import { Rules } from "/static/rules.js";
import { canSearch, capital, SIDES, statusOf, stepsOf } from "/static/status.js";

const titleOf = (game) => game.replace(/^[\w.:]*:/, "");  // of my_module:MyGame its class

// How far a key goes in the game; on the board the arrows go from cell to cell.
const KEYS = { ArrowLeft: -1, ArrowRight: 1 }, KEYS_ON_BOARD = { PageUp: -1, PageDown: 1, Home: -Infinity, End: Infinity };

function Page() {
  const [about, setAbout] = useState(null);
  const [game, setGame] = useState(readAddress);
  const [position, setPosition] = useState(null);
  const [analysis, setAnalysis] = useState({ on: false, found: null, mode: "policy", simulations: 256 });
  const [review, setReview] = useState(null);
  const [said, setSaid] = useState({});
  const [error, setError] = useState("");
  const [hover, setHover] = useState(null);
  const [offer, setOffer] = useState(null);  // the moves after which the bot would resign

  const players = about ? [game.first, game.second ?? about.opponent] : [];
  const shown = game.moves.slice(0, game.at);
  const all = game.moves.join(" ");
  const asked = { moves: shown.join(" "), step: game.step, start: game.start };
  const live = game.at === game.moves.length;
  const over = position && (position.outcome || (live && game.resigned !== null));
  const mover = position && !over ? players[position.toPlay] : null;
  const canMove = Boolean(position && !over && mover === "you");

  const change = (fields) => setGame((before) => ({ ...before, ...fields }));
  const visit = useRef(false);
  function go(fields) {  // what a person does is an entry of the browser's history; what follows by itself is not
    visit.current = true;
    change(fields);
  }
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
    if (about?.newest && !game.step) change({ step: String(about.newest) });
  }, [about?.newest, game.step]);

  useEffect(() => {
    const onAddress = () => setGame(readAddress());
    addEventListener("hashchange", onAddress);
    return () => removeEventListener("hashchange", onAddress);
  }, []);

  useEffect(() => {
    if (!about) return;
    writeAddress({ ...game, second: game.second ?? about.opponent }, visit.current);
    visit.current = false;
    document.title = `${titleOf(about.game)} · plyzero`;
  }, [about?.game, game]);

  useEffect(() => {
    let left = false;
    setHover(null);
    get("position", { ...asked, moves: all, at: game.at }).then((found) => {
      if (left) return;
      setError("");
      setPosition(found);
      setGame((now) => (now.moves.join(" ") !== all || now.at !== game.at ? now  // something else is to be shown by now
        : { ...now, moves: found.moves, at: live ? found.moves.length : found.at }));
    }, (problem) => left || setError(problem.message));
    return () => { left = true; };
  }, [all, game.at, game.start]);

  const settled = position && position.at === game.at && position.moves.join(" ") === all;

  useEffect(() => {  // the bot's move
    if (!settled || !live || !mover || mover === "you" || !canSearch(about, mover)) return undefined;
    return stream("think", { ...asked, player: mover }, (event) => {
      if (!event.done) return;
      setOffer(event.hopeless ? [...shown, event.choice].join(" ") : null);
      play(event.choice, change);
    }, setError);
  }, [about?.ready, about?.playsMeanwhile, settled, position, mover, live]);

  useEffect(() => {  // the analysis
    setAnalysis((before) => ({ ...before, found: null }));
    if (!about?.ready || !settled || !analysis.on || position.outcome) return undefined;
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
  }, [about?.ready, settled, position, analysis.on, analysis.simulations, game.step]);

  // A person's move: played or, where a mistake is retried, only judged.
  function choose(name) {
    if (!retry) return play(name);
    say(`${name} is searched.`, retry);
    return judgeRetry(judged, retry, { ...asked, at: game.at, moves: shown, name }, (text, isRight) => say(text, isRight ? undefined : retry), setError);
  }

  function play(name, show = go) {
    if (game.moves[game.at] === name) show({ at: game.at + 1 });
    else follow([...shown, name], game.at + 1, show);
  }

  // Show another line; the one before stays as a variation, unless the other continues it.
  function follow(moves, at, show = go) {
    const lines = [...game.lines, game.moves].filter((line) => !line.every((name, i) => name === moves[i]));
    show({ moves, at, resigned: null, lines: lines.slice(-20) });
  }

  const onKey = useRef(null);
  onKey.current = (event) => {  // effects run later than the next key may come
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
    if (last >= 0) go({ moves: game.moves.slice(0, last), at: last, resigned: null });
  }

  function hint() {
    say("A hint is searched.");
    stream("think", { ...asked, simulations: 256 }, (event) => {
      if (!event.done) return;
      const best = event.moveInfos[0];
      say(`Hint: ${best.move}. ${event.judge}`);
      setHover({ line: best.line ?? [] });
    }, setError);
  }

  function newGame(swap) {
    const [first, second] = swap ? [players[1], players[0]] : players;
    begin({ first, second, start: game.start });
  }

  function begin(fields, text = game.moves.length ? "The game before is behind the browser's Back button." : "") {
    const next = { moves: [], at: 0, resigned: null, lines: [], notes: {}, start: "", ...fields };
    go(next);
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

  const isOffered = settled && live && canMove && offer !== null && all.startsWith(offer)
    && position.movers.slice(offer.split(" ").length).every((by) => by === null);
  const judged = review?.of === all ? review : null;
  const drawing = useMemo(() => hover ?? (analysis.on ? drawingOf(position, analysis) : settled && !retry ? betterMove(judged, position.at) : null),
    [hover, position, analysis, judged, settled, retry]);

  if (!about) return html`<main><p>${error || "Loading."}</p></main>`;
  const status = settled ? statusOf({ about, position, game, players }) : "";
  const why = about.ready ? null : `${capital(about.waitsFor)}.`;
  const canUndo = settled && live && position.movers.some((by) => by !== null && (players[by] === "you" || !players.includes("you")));
  const top = players[1] === "you" && players[0] !== "you" ? 0 : 1;  // a person sits below the board
  const score = settled ? scoreOf({ position, found: analysis.on ? analysis.found : null, plies: judged?.plies }) : null;
  const winner = !over ? null : position.outcome ? position.outcome.winner : 1 - game.resigned;
  const strip = (side) => html`<${PlayerStrip} about=${about} position=${position} side=${side} player=${players[side]}
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
    <main>
      ${position ? html`<section class=${position.svg ? "table" : ""} aria-label="Board" aria-busy=${String(!settled)} style=${{ "--ratio": width / height }}>
        ${strip(top)}
        <div class="middle">
          <${Evaluation} score=${score === null || top ? score : 1 - score} below=${1 - top} colours=${position.colours} />
          <${BoardView} position=${position} canMove=${canMove} drawing=${drawing} onMove=${choose} />
        </div>
        ${strip(1 - top)}
      </section>` : html`<p>Loading.</p>`}
      <div>
        <section class="card" aria-label="Play">
          <p role="status" aria-live="polite" class="status">${said.here === here && said.text ? `${said.text} ` : ""}${status}</p>
          ${isOffered ? html`<p>The bot offers to resign. <button onClick=${() => go({ resigned: 1 - position.toPlay })}>Accept</button></p>` : null}
          ${error ? html`<p class="warning" role="alert">${error}</p>` : null}
          ${about.newest !== null && game.step && String(about.newest) !== game.step
            ? html`<p><button onClick=${() => change({ step: String(about.newest) })}>
                Use the newest model, of step ${about.newest}</button></p>` : null}
          <div class="row">
            <button disabled=${!canUndo} onClick=${undo} title=${live ? null : "at the last position; another move here begins a variation"}>Undo</button>
            <button disabled=${!canMove || !about.ready} title=${why} onClick=${hint}>Hint</button>
            <button disabled=${Boolean(over) || !players.includes("you")}
              onClick=${() => go({ at: game.moves.length, resigned: players[position.toPlay] === "you" ? position.toPlay : players.indexOf("you") })}>
              Resign</button>
            <button onClick=${() => newGame(false)}>New game</button>
            <button onClick=${() => newGame(true)}>New game, sides swapped</button>
          </div>
          <${MoveEntry} position=${position} canMove=${canMove} onMove=${choose} />
          <${Rules} text=${about.rules} />
        </section>
        ${position ? html`<${Review} review=${judged} game=${game} position=${position} why=${why}
          onShow=${show} onFollow=${follow} onDelete=${(line) => go({ lines: game.lines.filter((each) => each !== line) })}
          retry=${retry} canRetry=${(by) => about.ready && players[by] === "you"} onNote=${(text) => change({ notes: { ...game.notes, [asked.moves]: text } })}
          onRetry=${(turn, at) => {
            say(`Find a better move than ${game.moves[at]}.`, turn, at);
            go({ at });
          }}
          onReview=${(simulations) => reviewGame({ ...asked, moves: all, simulations, ...(game.resigned === null ? {} : { resigned: game.resigned }) },
            (found) => setReview(found && { ...found, of: all }), setError)} />` : null}
        <${Analysis} state=${analysis} onChange=${(fields) => setAnalysis((before) => ({ ...before, ...fields }))}
          position=${position} why=${why} onLine=${setHover} />
        <section class="card" aria-label="Files">
          <${Records} about=${about} game=${game} position=${settled ? position : null} players=${players} onLoad=${begin} onError=${setError} say=${say} />
          ${position ? html`<${SetUp} position=${position} onStart=${setUp} />` : null}
        </section>
        ${about.hasNetwork ? html`<${NetworkView} asked=${asked} why=${why}
          ready=${about.ready && settled && !position.outcome} />` : null}
      </div>
    </main>`;
}

// What an analysis draws on the board: shares of visits or of the policy, or the principal variation.
function drawingOf(position, { found, mode }) {
  if (!found?.moveInfos || !position || mode === "nothing") return null;
  if (mode === "line") return { line: found.moveInfos[0]?.line ?? [] };
  const spots = new Map(position.legal.map((move) => [move.name, move.spots]));
  const visits = found.moveInfos.reduce((sum, info) => sum + info.visits, 0) || 1;
  const share = (info) => (mode === "policy" ? info.policy : info.visits / visits);
  return {
    shares: found.moveInfos
      .map((info) => ({ spots: spots.get(info.move) ?? [], share: share(info), label: Math.round(100 * share(info)) }))
      .sort((one, other) => other.share - one.share),
  };
}

// A field for moves, and the list of legal moves, which what is typed filters.
function MoveEntry({ position, canMove, onMove }) {
  const [text, setText] = useState("");
  const fits = (position?.legal ?? []).filter(({ name }) => name.toLowerCase().startsWith(text.trim().toLowerCase()));
  const [problem, setProblem] = useState("");
  function submit(event) {
    event.preventDefault();
    const exact = fits.find(({ name }) => name.toLowerCase() === text.trim().toLowerCase()) ?? (fits.length === 1 ? fits[0] : null);
    setProblem(exact ? "" : `Expected a legal move, got ${text.trim() || "nothing"}.`);
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
      <div class="row">${fits.slice(0, 100).map(({ name }) => html`<button disabled=${!canMove} onClick=${() => onMove(name)}>${name}</button>`)}</div>
      ${fits.length > 100 ? html`<p class="dim">${fits.length - 100} more; type the beginning of a move.</p>` : null}
    </details>`;
}

render(html`<${Page} />`, document.getElementById("page"));
