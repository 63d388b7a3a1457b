// The dashboard of a run. With window.PLYZERO_REPORT it shows that; otherwise it asks the server every two seconds.
import { html, render, useEffect, useMemo, useRef, useState } from "./html.js";

const REPORT = window.PLYZERO_REPORT;
const POLL_MS = 2000, GAMES_MS = 10000, TIMEOUT_MS = 8000, GAMES_TIMEOUT_MS = 120000; // the rules may have to be compiled
const MOST_POINTS = 6000; // of a curve; above that it is asked for anew, which thins it
const FEW_GAMES = 10; // of the newest games, until all are asked for
const DASHES = [[], [8, 5], [2, 4], [12, 3, 2, 3]];
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14400, 43200].map((minutes) => 60 * minutes);
const WHOLE_STEPS = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power));
const BEFORE = "the run before"; // from which this one goes on
const X_NAMES = { step: "step", time: "time", games: "games" };

// ---------------------------------------------------------------------------------------------- numbers as text

const known = (value) => value !== null && value !== undefined;
const whole = (value) => known(value) ? Math.round(value).toLocaleString("en") : "–";
const fixed = (digits) => (value) => known(value) ? value.toFixed(digits) : "–";
const percent = (value) => known(value) ? `${Math.round(100 * value)} %` : "–";
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(Math.round(value)).toLocaleString("en")}`;

function duration(seconds) {
  if (!known(seconds)) return "–";
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return minutes ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(seconds)} s`;
}

function compact(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  return size >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : `${+value.toFixed(4)}`;
}

// ------------------------------------------------------------------------------------------------- what is known

async function ask(address, timeout = TIMEOUT_MS) {
  const answer = await fetch(address, { signal: AbortSignal.timeout(timeout) });
  if (!answer.ok) throw new Error(`the server answers with ${answer.status}`);
  return answer.json();
}

const appended = (old, more) =>
  Object.fromEntries(Object.entries(more).map(([name, values]) => [name, [...(old?.[name] ?? []), ...values]]));

// Returns the curves with what is new, and the same object if nothing is.
function merged(old, more) {
  if (!more.learning) return old;
  if (old?.reader !== more.reader) return more;
  if (old.next === more.next && JSON.stringify(old.ladder) === JSON.stringify(more.ladder)) return old;
  const each = (part) => Object.fromEntries(
    Object.entries(more[part]).map(([name, columns]) => [name, appended(old[part][name], columns)]));
  return { ...more, before: old.before, learning: appended(old.learning, more.learning), ratings: each("ratings"), workers: each("workers") };
}

async function newSeries(old, run = "") {
  const isLong = (old?.learning?.step.length ?? 0) > MOST_POINTS, since = (number) => ask(`${run}api/run/series?since=${number}`);
  const more = await since(isLong ? 0 : old?.next ?? 0);
  if (isLong) return more;
  return old && more.reader !== old.reader ? since(0) : merged(old, more);
}

// Shows what `look` finds, now and so long after each answer, but not while the page is hidden. Returns what ends it.
function repeat(look, show, milliseconds) {
  let timer, isBusy = false, isOver = false;
  const begin = async () => {
    clearTimeout(timer);
    if (isBusy || isOver || document.hidden) return;
    isBusy = true;
    const found = await look();
    isBusy = false;
    if (isOver) return;
    show(found);
    timer = setTimeout(begin, milliseconds);
  };
  document.addEventListener("visibilitychange", begin);
  begin();
  return () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", begin);
  };
}

// Returns the end of a path: the directory and the one that it is in.
const shortPath = (path) => path.split(/[\\/]/).slice(-2).join("/");

// Returns the curves of another run of this folder; null for "", and until they are known.
function useOther(name) {
  const [found, setFound] = useState({});
  useEffect(() => {
    if (!name) return undefined;
    let series = null;
    const look = async () => {
      series = await newSeries(series, `../${encodeURIComponent(name)}/`).catch(() => series);
      return { name, series };
    };
    return repeat(look, setFound, GAMES_MS);
  }, [name]);
  return found.name === name ? found.series : null;
}

function useRun() {
  const [found, setFound] = useState(REPORT ?? {});
  useEffect(() => {
    if (REPORT) return undefined;
    let series;
    const look = async () => {
      try {
        const state = await ask("api/run/state");
        series = await newSeries(series);
        return { state, series, at: Date.now(), gone: null };
      } catch (error) {
        return { gone: `No answer from the server${error.name === "Error" ? ` (${error.message})` : ""}` };
      }
    };
    const lookAtGames = () => ask("api/run/games?newest=50", GAMES_TIMEOUT_MS).then((games) => ({ games }), () => ({}));
    const show = (more) => setFound((before) => ({ ...before, ...more }));
    const ends = [repeat(look, show, POLL_MS), repeat(lookAtGames, show, GAMES_MS)]; // neither waits for the other
    return () => {
      for (const end of ends) end();
    };
  }, []);
  return found;
}

// -------------------------------------------------------------------------------------------------------- charts

function colourOf(holder, name) {
  const probe = document.createElement("span");
  probe.className = name;
  holder.append(probe);
  const colour = getComputedStyle(probe).color; // light-dark() is resolved only here
  probe.remove();
  return colour;
}

const faint = (colour) => colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.18)");

function useScheme() {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return dark;
}

function plotOptions(holder, { lines, range, xRange, formatX, formatY, onCursor }) {
  const axis = colourOf(holder, "axis"), grid = { stroke: colourOf(holder, "grid"), width: 1 };
  const look = { stroke: axis, grid, ticks: grid, font: "12px system-ui, sans-serif" };
  const series = [{}], bands = [];
  lines.forEach((line, i) => {
    const look = (line.look ?? i) % 4, stroke = colourOf(holder, `line-${look}`), points = { show: line.y.length < 60, size: 6 };
    series.push({ stroke, width: line.isOther ? 1 : 2, dash: DASHES[look], spanGaps: true, points });
    if (!line.low) return;
    const bound = { stroke: "transparent", spanGaps: true, points: { show: false } };
    bands.push({ series: [series.length + 1, series.length], fill: faint(stroke) });
    series.push(bound, bound);
  });
  return {
    width: holder.clientWidth, height: 220, series, bands,
    legend: { show: false },
    scales: { x: { time: false, range: () => xRange.current }, ...(range ? { y: { range } } : {}) },
    axes: [
      { ...look, values: (_plot, splits) => splits.map(formatX), space: 70, size: 36, incrs: formatX === FORMAT_TIME ? TIME_STEPS : WHOLE_STEPS },
      { ...look, values: (_plot, splits) => splits.map(formatY), size: 62 },
    ],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.left < 0 ? null : plot.cursor.idx)] },
  };
}

function Plot({ name, x, lines, range, ends, formatX, formatY, onCursor }) {
  const holder = useRef(null), plot = useRef(null), xRange = useRef(ends), dark = useScheme();
  xRange.current = ends;
  const data = [x, ...lines.flatMap((line) => line.low ? [line.y, line.low, line.high] : [line.y])];
  const few = x.length < 60;
  useEffect(() => {
    const place = holder.current;
    plot.current = new uPlot(plotOptions(place, { lines, range, xRange, formatX, formatY, onCursor }), data, place);
    const observer = new ResizeObserver(() => place.isConnected && plot.current.setSize({ width: place.clientWidth, height: 220 }));
    observer.observe(place);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [dark, few, formatX, lines.map((line) => line.label).join("\n")]);
  useEffect(() => plot.current.setData(data), [x, lines, ...ends]);
  return html`<div class="plot" ref=${holder} role="img" aria-label=${name}></div>`;
}

// A chart and, as its legend, a table of the newest values, or of those below the pointer.
function Chart({ title, note, soon, x, lines, range, ends, stopped, formatX, formatY, formatRow, xName }) {
  const [at, setAt] = useState(null);
  if (!lines.some((line) => line.y.some(known))) return html`<section class="card chart"><h2>${title}</h2><p class="dim">${soon}</p></section>`;
  const text = (line, i) => formatRow(line, i);
  const newest = (line) => line.y.findLastIndex(known);
  const place = at === null || at >= x.length ? null : at;
  const summary = lines.map((line) => `${line.label} ${text(line, newest(line))}`).join("; ");
  return html`<section class="card chart">
    <h2>${title}</h2>
    <${Plot} name=${`${title} by ${xName}. Newest values: ${summary}.`} ...${{ x, lines, range, ends, formatX, formatY }} onCursor=${setAt} />
    <table>
      <thead><tr><th class="text" scope="col">${note}</th>
        <th scope="col">${place === null ? "newest" : `at ${formatX(x[place])}`}</th></tr></thead>
      <tbody>${lines.map((line, i) => html`<tr key=${line.label}>
        <td class="text"><span class=${`swatch line-${(line.look ?? i) % 4} ${line.isOther ? "other" : ""}`}></span>${line.label}</td>
        <td>${text(line, place ?? newest(line))}${place === null && stopped.has(line.label) ? ", stopped" : ""}</td></tr>`)}</tbody>
    </table>
  </section>`;
}

// x and y in the order of x: a trainer that resumes from an earlier state repeats steps.
function ordered(x, columns) {
  const rows = x.map((_, row) => row).filter((row) => known(x[row]));
  if (rows.some((row, i) => i > 0 && x[row] < x[rows[i - 1]])) rows.sort((one, other) => x[one] - x[other]);
  return [rows.map((row) => x[row]), columns.map((column) => rows.map((row) => column[row]))];
}

function learningCharts(series, xName, began, { judged_from }) {
  const table = series.learning, across = xName === "time" ? table.time.map((each) => each - began) : table[xName];
  const lines = (...pairs) => {
    const [x, columns] = ordered(across, pairs.map(([name]) => table[name]));
    return { x, lines: pairs.map(([, label], i) => ({ label, y: columns[i] })) };
  };
  const row = (format) => (line, i) => format(line.y[i]);
  const loss = fixed(3), learned = (value) => !known(value) ? "not measured" : percent(value) + (value < -0.005 ? ", worse than a guess" : "");
  return [
    { title: "Losses", note: "in nats, the mean since the model before", soon: "The losses of policy and value, with the first model.", formatY: compact, formatRow: row(loss),
      ...lines(["policy_loss", "policy"], ["value_loss", "value"]) },
    { title: "What the network has learned", note: "0 % = a guess, below it worse than one, 100 % = the targets",
      soon: `How much better than a guess the network is on held-out games, judged from step ${whole(judged_from)} on.`, formatY: percent, formatRow: row(learned),
      ...lines(["policy_learned", "policy, on held-out games"], ["value_learned", "value, on held-out games"],
        ["window_policy_learned", "policy, on trained games"], ["window_value_learned", "value, on trained games"]) },
    { title: "Replay ratio", note: "positions trained per position generated", soon: "The balance of trainer and workers, with the first model.", formatY: compact, formatRow: row(fixed(2)),
      range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)], ...lines(["replay_ratio", "ratio"], ["replay_ratio_wanted", "wanted"]) },
  ];
}

// Tables of several names over one x: every line has a value where its own table has a row, and null elsewhere.
function together(tables, xName, began) {
  const named = Object.entries(tables).filter(([, table]) => table.step.length);
  const across = (table) => xName === "time" ? table.time.map((each) => each - began) : table[xName];
  const x = [...new Set(named.flatMap(([, table]) => across(table)).filter(known))].sort((one, other) => one - other);
  const lines = named.map(([label, table]) => {
    const rows = new Map(across(table).map((each, row) => [each, row]));
    return { label, table, row: (i) => rows.get(x[i]), column: (read) => x.map((each) => rows.has(each) ? read(rows.get(each)) : null) };
  });
  return { x, lines };
}

function workerCharts(series, xName, began, { running }) {
  if (xName === "games") return []; // a worker does not know how many the trainer has read
  const livingFirst = Object.entries(series.workers).sort(([one], [other]) => running.has(other) - running.has(one));
  const { x, lines } = together(Object.fromEntries(livingFirst), xName, began), soon = "A line for each worker, after its first minute.";
  const of = (name) => lines.map(({ label, table, column }) => ({ label, y: column((row) => table[name][row]) }));
  const row = (format) => (line, i) => format(line.y[i]);
  const upwards = (_plot, _low, high) => [0, Math.max(1, high * 1.1)];
  return [
    { title: "Positions per second", note: "by worker, means of a minute", soon, x, formatY: compact, formatRow: row(whole),
      range: upwards, lines: of("positions_per_second") },
    { title: "Time in the network", note: "share of a worker's time", soon, x, formatY: percent, formatRow: row(percent),
      range: () => [0, 1], lines: of("network_share") },
  ];
}

function ratingCharts(series, xName, began) {
  const found = together(series.ratings, xName, began), x = found.x;
  const lines = (...names) => found.lines.map(({ label, table, row, column }) => {
    const [y, low, high] = names.map((name) => column((row) => table[name][row]));
    return { label, table, row, y, low, high };
  });
  const score = ({ table, row }, i) => {
    const at = row(i);
    return at === undefined ? "–" : `${percent(table.score[at])} (${percent(table.score_low[at])} to ${percent(table.score_high[at])}) in ${table.played[at]} games`;
  };
  return [{ title: "Score against fixed opponents", note: "band: 95 % interval", formatY: percent, formatRow: score, x,
    soon: "The score of each model against players of constant strength, with the first match of rating.opponents.",
    range: () => [0, 1], lines: lines("score", "score_low", "score_high") }];
}

// The ratings of the run's ladder: those of its checkpoints as a curve, those of the other players as levels.
function ladderCharts(series, xName, began) {
  if (!series.ladder) return [];
  const { anchor, checkpoints, others } = series.ladder;
  const across = xName === "time" ? checkpoints.time.map((each) => known(each) ? each - began : null) : checkpoints[xName];
  const [x, [y, low, high, played]] = ordered(across, ["elo", "elo_low", "elo_high", "played"].map((name) => checkpoints[name]));
  const level = ([label, each]) => ({ label, level: each, y: x.map(() => each.elo) });
  const text = (elo, low, high, games) => low < high ? `${signed(elo)} (${signed(low)} to ${signed(high)}) in ${games} games` : signed(elo);
  const formatRow = (line, i) => line.level ? text(line.level.elo, line.level.elo_low, line.level.elo_high, line.level.played)
    : known(line.y[i]) ? text(line.y[i], line.low[i], line.high[i], played[i]) : "–";
  return [{ title: "Ladder of the checkpoints, in Elo", note: `${anchor} = 0; band: 95 % interval`, formatY: signed, formatRow, x,
    lines: [{ label: "checkpoints", y, low, high }, ...Object.entries(others).map(level)] }];
}

// The first and the last value on the horizontal axis, the same for all charts.
function endsOf(charts) {
  const all = charts.flatMap((chart) => [chart.x[0], chart.x.at(-1)]).filter(known);
  const first = Math.min(...all), last = Math.max(...all);
  return first < last ? [first, last] : [first - 1, first + 1];
}

function chartsOf(series, xName, about) {
  if (!series?.learning) return null;
  const began = Math.min(series.learning.time[0] ?? Infinity, ...[...Object.values(series.ratings), ...Object.values(series.workers)].map((table) => table.time[0] ?? Infinity));
  return [ratingCharts, ladderCharts, learningCharts, workerCharts].flatMap((make) => make(series, xName, began, about));
}

// A chart with the lines of the same one of another run, which are thinner and look alike.
function overlaid(chart, other, name) {
  if (!other) return chart;
  const x = [...new Set([...chart.x, ...other.x])].sort((one, two) => one - two), looks = chart.lines.map(({ label }) => label);
  const moved = (from, isOther) => {
    const rows = new Map(from.x.map((each, row) => [each, row]));
    const column = (values) => values && x.map((each) => rows.has(each) ? values[rows.get(each)] : null);
    return from.lines.map((line, i) => ({ isOther, label: isOther ? `${name}: ${line.label}` : line.label,
      look: isOther && looks.includes(line.label) ? looks.indexOf(line.label) : i, y: column(line.y), low: column(line.low), high: column(line.high),
      text: (row) => from.formatRow(line, rows.get(x[row])) }));
  };
  return { ...chart, x, lines: [...moved(chart, false), ...moved(other, true)], formatRow: (line, row) => line.text(row) };
}

function Charts({ series, state }) {
  const [xName, setX] = useState("step"), [chosen, setName] = useState(null), name = chosen ?? (series?.before ? BEFORE : "");
  const ofFolder = useOther(name === BEFORE ? "" : name), other = name === BEFORE ? series.before : ofFolder;
  const others = [...(series?.before ? [BEFORE] : []), ...(state.others ?? [])];
  const running = new Set(state.processes.filter(isAlive).map((each) => each.name));
  const charts = useMemo(() => {
    const theirs = chartsOf(other, xName, { running: new Set(), judged_from: state.judged_from });
    return chartsOf(series, xName, { running, judged_from: state.judged_from })
      ?.map((chart) => overlaid(chart, theirs?.find(({ title }) => title === chart.title), name));
  }, [series, other, xName, [...running].join()]);
  const formatX = xName === "time" ? FORMAT_TIME : compact;
  if (!charts?.some((chart) => chart.x.length)) return null;
  const ends = endsOf(charts);
  const stopped = new Set(Object.keys(series.workers).filter((name) => !running.has(name)));
  return html`<div class="row" role="group" aria-label="Horizontal axis of the charts">
      <span>Curves by</span>
      ${Object.keys(X_NAMES).map((name) => html`<button key=${name} aria-pressed=${String(name === xName)} onClick=${() => setX(name)}>${X_NAMES[name]}</button>`)}
      <span class="dim">${xName === "time" ? "since the first line of metrics" : xName === "games" ? "read by the trainer" : "of the optimiser"}</span>
      ${others.length ? html`<label for="other">Compare with</label>
        <select id="other" value=${name} onChange=${({ target }) => setName(target.value)}>
          <option value="">no other run</option>
          ${others.map((each) => html`<option value=${each}>${each}</option>`)}
        </select>` : null}
    </div>
    <div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} ...${chart} xName=${X_NAMES[xName]} ends=${ends} stopped=${stopped} formatX=${formatX} />`)}</div>`;
}

const FORMAT_TIME = (seconds) => {
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
};

// -------------------------------------------------------------------------------------------------- the other parts

function Tiles({ state }) {
  const tiles = [
    ["The trainer ran for", duration(state.seconds)],
    ["Games", whole(state.games)],
    ["Positions/s", whole(state.positions_per_second)],
    ["Step", whole(state.step)],
    ["Replay ratio", `${fixed(2)(state.replay_ratio)} of ${state.replay_ratio_wanted}`],
  ];
  return html`<section class="card">${state.summary.map((line) => html`<p class="summary" key=${line}>${line}</p>`)}${state.limit && html`<p class="dim">${state.limit}</p>`}</section>
    <dl class="tiles">
      ${tiles.map(([name, value]) => html`<div class="card" key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}

function Warnings({ state }) {
  const { warnings, earlier_warnings: earlier, judged_from } = state;
  return html`<section class="card">
    <h2>Warnings</h2>
    ${warnings.length ? html`<ul>${warnings.map((each) => html`<li key=${each.who + each.text} class="warning"><strong>${each.who}</strong>: ${each.text}</li>`)}</ul>`
      : html`<p>No warnings${state.step < judged_from ? `; learning is judged from step ${whole(judged_from)} on` : ""}.</p>`}
    ${earlier.length ? html`<details><summary>${earlier.length} earlier</summary>
      <ul>${earlier.map((each) => html`<li key=${each.text}>until step ${whole(each.step)}: ${each.text}</li>`)}</ul></details>` : null}
  </section>`;
}

const isAlive = ({ life }) => life === "ok" || life === "stalled";

function Processes({ state }) {
  const life = { ok: "", stalled: "no sign of life", gone: "gone", stopped: "stopped" };
  const row = (each) => {
    const silent = each.life === "stalled" ? ` for ${duration(each.silent_seconds)}` : "";
    const doing = each.life === "ok" ? each.state : `${life[each.life]}${silent}`;
    const speed = each.role === "trainer" ? each.trained_per_second : each.positions_per_second;
    return html`<tr key=${each.name} class=${each.life === "ok" ? "" : each.life === "stalled" ? "warning" : "ended"}>
      <td class="text">${each.name}</td><td class="text">${doing}</td>
      <td>${duration(each.seconds)}</td><td>${whole(each.games)}</td><td>${whole(speed)}</td>
      <td>${known(each.network_share) ? percent(Math.min(1, each.network_share)) : "–"}</td>
      <td>${known(each.model_step) ? whole(each.model_step) : "–"}</td>
      <td>${known(each.steps_behind) ? whole(each.steps_behind) : "–"}</td></tr>`;
  };
  const heads = [["age"], ["games"], ["positions/s", "trained, or recorded by a worker"],
    ["network", "share of a worker's time that its network takes, in the last minute"], ["model step"],
    ["behind", "steps between the model that a worker plays with and the newest"]];
  const table = (label, processes) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr><th class="text" scope="col">process</th><th class="text" scope="col">state</th>
      ${heads.map(([name, about]) => html`<th scope="col" key=${name} title=${about}>${name}</th>`)}</tr></thead>
    <tbody>${processes.map(row)}</tbody></table></div>`;
  const alive = state.processes.filter(isAlive), dead = state.processes.filter((each) => !isAlive(each));
  return html`<section class="card"><h2>Processes</h2>
    ${alive.length ? table("Table of the processes", alive) : html`<p>No process is running.</p>`}
    ${dead.length ? html`<details><summary>${dead.length} ended</summary>${table("Table of the ended processes", dead)}</details>` : null}
  </section>`;
}

function Curve({ game }) {
  const values = game.values.map((value, ply) => game.players[ply] ? -value : value).slice(game.opening_plies);
  if (values.length === 1) values.push(values[0]);
  const points = values.map((value, i) => `${(100 * i / Math.max(1, values.length - 1)).toFixed(1)},${(20 - 19 * value).toFixed(1)}`);
  return html`<svg class="curve" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
    <line x1="0" x2="100" y1="20" y2="20" /><polyline points=${points.join(" ")} /></svg>`;
}

function GameItem({ game }) {
  const result = { first: "first player won", second: "second player won", draw: "draw" }[game.winner] ?? "cut off";
  const hash = { moves: game.moves.join(" "), first: "you", second: "you" };
  const about = html`<${Curve} game=${game} />${result} in ${game.values.length} plies<br />
    <span class="dim">${game.step ? `model of step ${whole(game.step)}` : "before the first model"}</span>`;
  if (REPORT) return html`<details><summary>${about}</summary><p class="moves">${game.moves.join(" ")}</p></details>`;
  return html`<a href=${`./#${new URLSearchParams(hash)}`}>${about}</a>`;
}

function Games({ found }) {
  const age = found.newest_seconds, [all, setAll] = useState(false);
  return html`<section class="card"><h2>Newest games</h2>
    <p class="dim">${known(age) ? `The newest was stored ${duration(age)} ${REPORT ? "before this report" : "ago"}; games are shown once their segment is sealed. ` : ""}
      A curve is the search's value for the first player: at the top it wins.</p>
    ${found.note ? html`<p>${found.note}</p>` : null}
    <ul class="games">${found.games.slice(0, all ? found.games.length : FEW_GAMES).map((game) => html`<li key=${game.id}><${GameItem} game=${game} /></li>`)}</ul>
    ${!all && found.games.length > FEW_GAMES ? html`<p><button onClick=${() => setAll(true)}>Show all ${found.games.length}</button></p>` : null}
  </section>`;
}

function Disk({ state }) {
  const { free_mb, min_free_mb, keep_mb } = state.disk, replay = state.replay;
  const size = (mb) => mb >= 10000 ? `${Math.round(mb / 1024).toLocaleString("en")} GB` : `${whole(mb)} MB`;
  return html`<section class="card"><h2>Store and settings</h2>
    <p>${whole(replay.games)} games with ${whole(replay.positions)} positions in ${whole(replay.segments)} segments, at
      most ${size(keep_mb)}; ${whole(state.models.count)} models. ${size(free_mb)} free on the volume; workers pause below
      ${" "}${size(min_free_mb)}.</p>
    <details><summary>Settings</summary><table><tbody>
      ${Object.entries(state.settings).map(([name, value]) => html`<tr key=${name}><th class="text" scope="row">${name}</th><td class="text">${String(value)}</td></tr>`)}
    </tbody></table></details>
  </section>`;
}

function Page() {
  const { state, series, games, gone, at, made } = useRun();
  useEffect(() => {
    if (state?.game) document.title = `Run of ${state.game} · plyzero`;
  }, [state?.game]);
  const when = made ? `report of ${new Date(1000 * made).toLocaleString()}` : at ? `as of ${new Date(at).toLocaleTimeString()}` : "";
  return html`<header><h1>${state?.game ? `Run of ${state.game}` : "Run"}</h1>
      ${REPORT ? null : html`<a href="./">Play</a>`}<span class="dim" title=${state?.run}>${shortPath(state?.run ?? "")}</span><span class="dim">${when}</span></header>
    <main>
      <div role="status">${gone ? html`<p class="card banner warning">${gone}; trying again every two seconds.${state ? " What is shown is older." : ""}</p>` : null}
        ${state?.waits_for ? html`<p class="card">Waiting: ${state.waits_for}.</p>` : null}</div>
      ${!state && !gone ? html`<p>Loading the run …</p>` : null}
      ${state?.game ? html`<${Tiles} state=${state} />
        <${Warnings} state=${state} />
        <${Charts} series=${series} state=${state} />
        <${Processes} state=${state} />
        <${Games} found=${games ?? { games: [], note: "The newest games are being read." }} />
        <${Disk} state=${state} />` : null}
    </main>`;
}

render(html`<${Page} />`, document.getElementById("page"));
