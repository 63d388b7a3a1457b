// What the page asks, answered in the browser: as plyzero/kits/web/answers.py does at the server of `plyzero serve`.

import { startBot } from "../bot.js";
import { describeEnds } from "../ends.js";
import { chosen, describeFound, isHopeless } from "../found.js";
import { reviewed } from "../judging.js";
import { keepFiles } from "../offline.js";
import { isChance, Positions } from "../positions.js";
import { loadRules, ONGOING } from "../wasm.js";

export const LOST = "lost"; // no error has this cause: there is no server

const SIMULATIONS = [0, 16, 64, 256, 1024]; // levels of a network that has none of its own
const USUAL_SIMULATIONS = 256, JUDGE_SIMULATIONS = 256;
const MOST_SECONDS = 10; // of a move: levels that take longer are not offered
const USUAL_SECONDS = 2; // of a move, at most, at the level of a new game
const FOLDER = new URL("../", import.meta.url);

const loaded = load();
loaded.catch(() => undefined); // each answer says what is wrong

export const get = (path, fields = {}) => answered(path, fields);
export const post = (path) => Promise.reject(new Error(`Expected a server that answers ${path}; plyzero serve is one.`));

// Calls onEvent with every event of a search or a review, and onError with a sentence. Returns a function that ends it.
export function stream(path, fields, onEvent, onError) {
  const asked = { hasLeft: false, stop: () => undefined };
  const report = (event) => asked.hasLeft || onEvent(event);
  const search = { think, review }[path];
  search(fields, report, asked).then((event) => report({ ...event, done: true }), ({ message }) => asked.hasLeft || onError(message));
  return () => {
    asked.hasLeft = true;
    asked.stop();
  };
}

async function answered(path, fields) {
  const { positions } = await loaded, names = split(fields.moves);
  const here = () => unfinished(positions.parse(names).positions.at(-1));
  switch (path) {
    case "about": return about();
    case "position": return described(positions, fields);
    case "why": return { sentence: positions.why(here(), split(fields.cells)) };
    case "preview": return positions.added(here(), fields.name);
    case "ends": return describeEnds(positions);
    case "inspect": return inspected(here(), fields);
    default: throw new Error(`Expected a question that this page can answer, got ${path}.`);
  }
}

const split = (text = "") => text.split(" ").filter(Boolean);

async function load() {
  const [game, rules, model] = await Promise.all([
    fetched("game.json", (response) => response.json()),
    fetched("rules.wasm", (response) => response.arrayBuffer()),
    newestModel(),
  ]);
  const positions = new Positions(await loadRules(rules, game)), bot = startBot(model.version);
  bot.about.then(keepFiles).catch(() => undefined); // later, so that no file is fetched twice; the page works without it
  return { positions, game, models: { newest: model, loaded: model, bot } };
}

async function fetched(name, read, options = {}) {
  const response = await fetch(new URL(name, FOLDER), options);
  if (!response.ok) throw new Error(`${name} cannot be loaded: ${response.status} ${response.statusText}`);
  return read(response);
}

function newestModel() {
  return fetched("model.json", (response) => response.json(), { cache: "no-store" });
}

// --- the bot ---

let asks = 0;

// The first answer comes before the bot is ready, and each later one not before.
async function about() {
  const { game, models } = await loaded, isFirst = asks++ === 0;
  const known = isFirst ? null : await models.bot.about;
  if (known && models.newest.isWatched) models.newest = await newestModel().catch(() => models.newest); // without a network it stays
  const { newest } = models, playersNow = playersOf(game, known?.simulationsPerSecond);
  return {
    players: playersNow.map(({ id, name, strength }) => ({ id, name, strength })),
    opponent: usualOf(game, playersNow),
    newest: newest.step,
    steps: [models.loaded.step, newest.step].map(String),
    hasNetwork: true,
    game: game.game,
    identity: game.identity,
    rules: [game.rules, ...game.notes].filter(Boolean).join("\n"),
    sgf: null,
    hasPgn: false,
    hasRun: false,
    hasHome: false,
    isStatic: true,
    ready: Boolean(known),
    waitsFor: known ? null : "the bot is being loaded, 16 MB at the first visit",
    playsMeanwhile: false,
  };
}

// Returns the players, with their settings. speed: simulations a second, undefined while it is not known.
function playersOf(game, speed) {
  const secondsOf = (simulations) => (speed ? simulations / speed : 0);
  const pace = (simulations) => (secondsOf(simulations) < 0.1 ? "" : `about ${Number(secondsOf(simulations).toPrecision(1))} s a move in this browser`);
  const levels = game.levels.map(({ number, simulations, temperature, claim, scores }) => ({
    id: `level:${number}`, name: `${game.bot}, level ${number} of ${game.levels.length}: ${claim}`,
    strength: [claim === scores ? "" : scores, pace(simulations)].filter(Boolean).join("; "), simulations, temperature,
    shortWins: number === game.levels.length, // as at the level that was measured
  }));
  const networks = SIMULATIONS.map((simulations) => ({
    id: `net:${simulations}`, name: simulations ? `the network, ${simulations} simulations a move` : "the network, without a search",
    strength: pace(simulations), simulations, temperature: 0, shortWins: true,
  }));
  const searching = (levels.length ? levels : networks).filter(({ simulations }) => secondsOf(simulations) <= MOST_SECONDS);
  return [...searching.map((each) => ({ ...each, seconds: secondsOf(each.simulations) })), { id: "random", name: "the random player", strength: "" }];
}

// Returns the id of the opponent of a new game: the usual one, or the strongest one below it that is fast enough.
function usualOf(game, players) {
  const usual = game.level === null ? `net:${USUAL_SIMULATIONS}` : `level:${game.level}`;
  const searching = players.filter(({ id }) => id !== "random"), at = searching.findIndex(({ id }) => id === usual);
  const upToUsual = at < 0 ? searching : searching.slice(0, at + 1); // where it is not offered, those that are take less time
  return upToUsual.findLast(({ seconds }) => seconds <= USUAL_SECONDS).id;
}

// Returns the bot with the model of a step: that which is loaded, unless the newest one is asked for.
async function botOf(step) {
  const { models } = await loaded, isOther = () => models.newest.version !== models.loaded.version;
  if (String(models.newest.step) === step && isOther()) {
    models.newest = await newestModel().catch(() => models.newest); // the folder may have gone on since this one was offered
    if (isOther()) {
      models.bot.end();
      Object.assign(models, { loaded: models.newest, bot: startBot(models.newest.version) });
    }
  }
  return models.bot;
}

const judgeOf = ({ game, models }) => `The judge: ${[models.loaded.bot, game.levels.at(-1)?.scores].filter(Boolean).join(", which ")}.`;

// --- answers ---

// The place of a position in a game comes as a number, or as text.
function described(positions, { moves, at, start }) {
  if (start) throw new Error("This page begins a game at its initial position alone.");
  return positions.describe(split(moves), at === undefined ? null : Number(at));
}

function unfinished(position) {
  if (position.outcome !== ONGOING) throw new Error("The game is over after these moves; there is nothing to search.");
  if (isChance(position)) throw new Error("Chance moves after these moves, so no player is to move.");
  return position;
}

// Returns a search of the bot, and keeps how it is stopped.
async function found(position, limits, { step }, asked, onProgress) {
  const bot = await botOf(step);
  if (asked.hasLeft) throw new Error("The search is not needed any more.");
  const { result, stop } = bot.search(position.state, limits, onProgress);
  asked.stop = stop;
  return result;
}

async function think(fields, report, asked) {
  const { positions, game, models } = await loaded;
  const position = unfinished(positions.parse(split(fields.moves)).positions.at(-1));
  const named = (action) => positions.nameOf(position, action);
  if (fields.player === "random") return { choice: named(positions.randomMove(position)) };
  const { simulationsPerSecond } = await models.bot.about;
  const player = playersOf(game, simulationsPerSecond).find(({ id }) => id === fields.player);
  if (fields.player && !player) throw new Error(`Expected a player of this page, got ${fields.player}; choose another one.`);
  const judge = { simulations: Number(fields.simulations ?? JUDGE_SIMULATIONS), temperature: 0, shortWins: true };
  const { simulations, temperature, shortWins } = player ?? judge;
  const shown = (result) => report(describeFound(positions, position, result, { of: simulations }));
  const result = await found(position, { simulations, shortWins }, fields, asked, shown);
  return {
    ...describeFound(positions, position, result, { of: simulations, isLast: true }),
    choice: named(chosen(result, temperature, positions.random)),
    judge: player ? "" : judgeOf({ game, models }),
    hopeless: isHopeless(result),
  };
}

async function review({ moves, since = 0, resigned, simulations = JUDGE_SIMULATIONS, ...fields }, report, asked) {
  const { positions, game, models } = await loaded, { positions: all, moves: made } = positions.parse(split(moves));
  const record = { positions: all.slice(since), moves: made.slice(since), resigned: resigned === undefined ? null : Number(resigned) };
  const search = (position, number, onProgress) => found(position, { simulations: number, shortWins: true }, fields, asked, onProgress);
  await botOf(fields.step); // the judge
  return reviewed({ positions, search, report, judge: judgeOf({ game, models }) }, record, Number(simulations));
}

// Returns the network's input and output in a position, without a search.
async function inspected(position, fields) {
  const { positions, game } = await loaded, [channels, height, width] = game.observation;
  const { networkValue, draw, points, moves } = await found(position, { simulations: 0 }, fields, {});
  const numbers = [...positions.rules.observe(position.state)].map((each) => Number(each.toFixed(4)));
  const plane = (c) => Array.from({ length: height }, (_, y) => numbers.slice((c * height + y) * width, (c * height + y + 1) * width));
  return {
    planes: Array.from({ length: channels }, (_, c) => plane(c)),
    places: null,
    policy: moves.map(({ action, prior }) => [positions.nameOf(position, action), prior]).sort(([, one], [, other]) => other - one),
    wdl: [(1 - draw + networkValue) / 2, draw, (1 - draw - networkValue) / 2],
    lead: points,
    board: null,
    toPlay: position.toPlay,
  };
}
