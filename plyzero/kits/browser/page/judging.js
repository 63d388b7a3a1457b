// The review of a game, as plyzero/kits/review makes it, in its short form: a turn is compared with the best one, and what it is
// worth less it has lost; a roll is compared with the expectation over all rolls, and the difference is luck. Where a loss
// matters, the better move is searched too, but no turn is searched anew with more simulations. Values are for player 0.

import { isChance, MAX_LINE, moversOf } from "./positions.js";
import { DRAW, ONGOING } from "./wasm.js";

const KINDS = [["blunder", 0.3], ["mistake", 0.2], ["inaccuracy", 0.1]]; // the least loss, as a share of the spread
const UNMEASURED = { unit: "score", spread: 1, margins: { 64: 0.15 }, random: null, bot: null }; // of a game without a measured scale
const USUAL_SLOPE = -0.25; // the margin falls as this power of the simulations
const LARGEST = 3; // losses of a player that are named whatever they cost
const ROUNDS = 3; // of searches of better moves
const SUGGESTED = 3; // turns that a search suggests, besides the one played
const COMPLETING = 16; // simulations for a move of a suggested turn that the search has not reached
const LEAST = 8, MOST_BRANCHES = 400, SAMPLED = 64; // simulations after each roll; rolls in a row that are all searched; else so many

const rounded = (value, digits = 4) => (value === null ? null : Number(value.toFixed(digits)));

// record: {positions, moves, resigned} of a game, or of a part of it. search(position, simulations, onProgress): Promise of a
// result of search.js. report: called with {done_of: [made, expected]}. judge: a sentence.
// Returns the review as plyzero/kits/review/description.py has it, with lines as /api/review of `plyzero serve`.
export async function reviewed({ positions, search, report, judge }, record, simulations) {
  const scale = positions.game.review ?? UNMEASURED, turns = turnsOf(record), rolls = rollsOf(record);
  const valuer = new Valuer(positions, search, report, scale.unit);
  const isByEnds = positions.game.numChances > 0 || scale.unit === "points";
  const judging = isByEnds ? new EndsJudging(valuer, record, turns, rolls) : new TreeJudging(valuer, record, turns);
  valuer.expected = judging.cost(simulations);
  await judging.search(simulations);
  const margin = marginOf(scale, simulations);
  for (let round = 0; round < ROUNDS; round++) if (!(await judging.confirm(mattering(judging, turns, scale, margin), simulations))) break;
  return described({ positions, record, turns, rolls, scale, judging, judge, margin });
}

// --- turns and rolls ---

// Returns the turns: moves of a player in a row. ply, end: moves and rolls before the turn and after it. sign: 1 for player 0.
function turnsOf({ positions, moves }) {
  const movers = moversOf(positions), turns = [];
  for (const [ply, by] of movers.entries()) {
    if (by === null) continue;
    if (turns.at(-1)?.end === ply && turns.at(-1).by === by) turns.at(-1).end = ply + 1;
    else turns.push({ ply, end: ply + 1, by, sign: by ? -1 : 1 });
  }
  return turns.map((turn) => ({ ...turn, moves: moves.slice(turn.ply, turn.end), positions: positions.slice(turn.ply, turn.end) }));
}

// Returns the rolls in a row, without a set-up, which is no luck.
function rollsOf({ positions }) {
  const rolls = [];
  for (const [ply, position] of positions.slice(0, -1).entries()) {
    if (!position.chances) continue;
    if (rolls.at(-1)?.end === ply) rolls.at(-1).end = ply + 1;
    else rolls.push({ ply, end: ply + 1 });
  }
  return rolls;
}

// --- values ---

class Valuer {
  #made = 0;

  constructor(positions, search, report, unit) {
    this.positions = positions;
    this.unit = unit;
    this.expected = 0;
    this.search = async (position, simulations) => {
      const show = ({ simulations: made }) => report({ done_of: [this.#made + made, Math.max(this.expected, this.#made + made)] });
      const result = await search(position, simulations, show);
      this.#made += result.simulations;
      show({ simulations: 0 });
      return result;
    };
  }

  // Returns a value of player 0 as that of `player`, and the other way round.
  seenBy(player, value) {
    if (player === 0) return value;
    return this.unit === "points" ? -value : 1 - value;
  }

  // Returns the value of a searched position: that of the best move.
  ofResult(position, result) {
    const best = result.moves.find(({ action }) => action === result.best);
    if (this.unit === "points") return this.seenBy(position.toPlay, best.points ?? result.points ?? 0);
    return this.seenBy(position.toPlay, (1 + (result.proven ? result.value : best.q ?? result.value)) / 2);
  }

  ofOutcome({ outcome, state }) {
    const sign = outcome === DRAW ? 0 : 1 - 2 * outcome;
    return this.unit === "points" ? sign * this.positions.rules.score(state) : (1 + sign) / 2;
  }

  async ofPosition(position, simulations) {
    if (position.outcome !== ONGOING) return this.ofOutcome(position);
    return this.ofResult(position, await this.search(position, simulations));
  }

  // Returns the value of a position: the expectation over the rolls that are due there, which share the simulations.
  async ofEnd(end, simulations) {
    const branches = this.#branchesOf(end), share = branches.length === 1 ? simulations : Math.max(LEAST, Math.floor(simulations / branches.length));
    let value = 0;
    for (const { probability, position } of branches) value += probability * (await this.ofPosition(position, share));
    return value;
  }

  // Returns what the rolls lead to, with probabilities; of too many some that are sampled.
  #branchesOf(position) {
    const { positions } = this, rolled = ({ probability, position: here }) => {
      if (!here.chances) return [{ probability, position: here }];
      const moves = positions.moves(here), total = moves.reduce((sum, roll) => sum + here.chances[roll], 0);
      return moves.map((roll) => ({ probability: (probability * here.chances[roll]) / total, position: positions.play(here, roll) }));
    };
    let found = [{ probability: 1, position }];
    while (found.some((each) => each.position.chances)) {
      if (found.length > MOST_BRANCHES) return Array.from({ length: SAMPLED }, () => ({ probability: 1 / SAMPLED, position: this.#sampled(position) }));
      found = found.flatMap(rolled);
    }
    return found;
  }

  #sampled(position) {
    const game = { positions: [position], moves: [] };
    this.positions.roll(game);
    return game.positions.at(-1);
  }
}

// --- the judgement of a game without dice, from its end backwards ---
// The value of a position is that of the position after the move played, or of the best other move if that is larger.

class TreeJudging {
  #results = new Map(); // ply -> result
  #confirmed = new Map(); // ply -> Map of a move that was not played -> the value after it

  constructor(valuer, { positions, moves }, turns) {
    Object.assign(this, { valuer, positions, moves, turns, last: positions.length - 1 });
  }

  cost(simulations) {
    return this.moves.length * simulations;
  }

  async search(simulations) {
    for (const [ply, position] of this.positions.entries()) {
      if (position.outcome === ONGOING && !isChance(position)) this.#results.set(ply, await this.valuer.search(position, simulations));
    }
  }

  // Searches the positions after the best other moves of turns. Returns whether there were any.
  async confirm(turns, simulations) {
    let count = 0;
    for (const turn of turns) {
      for (let ply = turn.ply; ply < turn.end; ply++) {
        const best = this.#bestOther(ply), known = this.#confirmed.get(ply) ?? new Map();
        if (!best || known.has(best.action)) continue;
        known.set(best.action, await this.valuer.ofPosition(this.valuer.positions.play(this.positions[ply], best.action), simulations));
        this.#confirmed.set(ply, known);
        count += 1;
      }
    }
    return count > 0;
  }

  // Returns for each turn {before, after, best, isExact}: the values with the best turn and after the turn played, the moves of the
  // best one, and whether both values are proven. What is smaller than the margin is noise.
  verdicts(margin) {
    const exact = this.#exactValues(), { last, valuer } = this, verdicts = [];
    let after = exact.has(last) ? { value: exact.get(last), isExact: true }
      : { value: valuer.ofResult(this.positions[last], this.#results.get(last)), isExact: false };
    for (const turn of this.turns.toReversed()) {
      let before = after, best = turn.moves;
      for (let ply = turn.end - 1; ply >= turn.ply; ply--) {
        const found = this.#before(ply, before, exact.get(ply), margin);
        before = found.known;
        if (found.better !== null) best = [...turn.moves.slice(0, ply - turn.ply), ...this.#line(ply, found.better)];
      }
      verdicts.unshift({ before: before.value, after: after.value, best, isExact: before.isExact && after.isExact });
      after = before;
    }
    return verdicts;
  }

  values(verdicts) {
    const values = this.positions.map(() => verdicts.at(-1)?.after ?? 0.5);
    for (const [i, { ply, end }] of this.turns.entries()) values.fill(verdicts[i].before, ply, end);
    if (isChance(this.positions[0])) values[0] = values[1];
    return values;
  }

  winrates(verdicts) {
    return this.values(verdicts);
  }

  draws() {
    return this.positions.map((_, ply) => this.#results.get(ply)?.draw ?? null);
  }

  leads() {
    return this.positions.map((position, ply) => leadIn(this.valuer.positions, position, this.#results.get(ply)));
  }

  line(ply, moves) {
    const result = this.#results.get(ply);
    return result ? this.#line(ply, moves[0] ?? result.best) : [];
  }

  // Returns the value of the position at `ply`, and the move that is better than the one played, null if there is none.
  #before(ply, after, exact, margin) {
    const position = this.positions[ply], best = this.#bestOther(ply), sign = position.toPlay ? -1 : 1;
    if (!best) return { known: { value: exact ?? after.value, isExact: after.isExact || exact !== undefined }, better: null };
    let { action } = best, other = exact;
    const confirmed = [...(this.#confirmed.get(ply) ?? [])].sort(([, one], [, two]) => sign * (two - one));
    if (other === undefined && confirmed.some(([move]) => move === action)) [action, other] = confirmed[0];
    if (other === undefined && best.q !== null) other = this.valuer.seenBy(position.toPlay, (1 + best.q) / 2);
    const gain = other === undefined ? 0 : sign * (other - after.value);
    if (exact !== undefined) return { known: { value: exact, isExact: true }, better: gain > 0 ? action : null };
    const isChoice = this.moves[ply] === this.#results.get(ply).best; // the search itself would have played it, so a small loss is noise
    if (gain <= (isChoice ? margin : 0)) return { known: after, better: null };
    return { known: { value: other, isExact: false }, better: action };
  }

  // Returns the best move but for the one played, null without another.
  #bestOther(ply) {
    const others = this.#results.get(ply).moves.filter(({ action }) => action !== this.moves[ply]);
    const allowed = others.filter(({ policy, visits }) => policy > 0 && visits > 0);
    const isBetter = (one, two) => one.visits > two.visits || (one.visits === two.visits && (one.q ?? -1) > (two.q ?? -1));
    return (allowed.length ? allowed : others).reduce((best, move) => (best && !isBetter(move, best) ? best : move), null);
  }

  #line(ply, move) {
    return this.#results.get(ply).moves.find(({ action }) => action === move).line;
  }

  // Returns ply -> value where it is certain: at the end, where a search has proven it, and after that.
  #exactValues() {
    const values = new Map(), { valuer } = this;
    for (const [ply, position] of this.positions.entries()) {
      const result = this.#results.get(ply), before = this.#results.get(ply - 1);
      if (position.outcome !== ONGOING) values.set(ply, valuer.ofOutcome(position));
      else if (result?.proven) values.set(ply, valuer.seenBy(position.toPlay, (1 + result.value) / 2));
      else if (before && values.has(ply - 1)) {
        const isLost = valuer.seenBy(this.positions[ply - 1].toPlay, values.get(ply - 1)) === 0;
        if (isLost || (before.proven === "win" && this.moves[ply - 1] === before.best)) values.set(ply, values.get(ply - 1));
      }
    }
    return values;
  }
}

// --- the judgement of a game with dice: by the values of the ends of turns ---

class EndsJudging {
  #found = new Map(); // ply -> result
  #ends = []; // of each turn: {moves, value} of the turns that are compared, the one played first
  #borders = []; // the values of the first and the last position

  constructor(valuer, { positions }, turns, rolls) {
    Object.assign(this, { valuer, positions, turns, rolls, first: Number(positions[0].awaitsSetup), last: positions.length - 1 });
  }

  cost(simulations) {
    return this.turns.reduce((sum, { moves }) => sum + (1 + moves.length + SUGGESTED) * simulations, 0);
  }

  async search(simulations) {
    for (const turn of this.turns) this.#ends.push(await this.#compared(turn, simulations));
    for (const ply of [this.first, this.last]) this.#borders.push(await this.valuer.ofEnd(this.positions[ply], simulations));
  }

  async confirm() {
    return false; // all turns that are compared are searched in the same way
  }

  verdicts() {
    const verdicts = [];
    let later = null; // the value before the turn that follows
    for (const [i, turn] of [...this.turns.entries()].toReversed()) {
      const [played, ...others] = this.#ends[i], isDirect = later !== null && turn.end === this.turns[i + 1].ply;
      const after = isDirect ? later : played.value; // the opponent moves at once, so the position is judged already
      const best = others.reduce((most, each) => (turn.sign * (each.value - most.value) > 1e-9 ? each : most), { ...played, value: after });
      later = best.value;
      verdicts.unshift({ before: later, after, best: best.moves, isExact: false });
    }
    return verdicts;
  }

  values(verdicts) {
    const values = this.positions.map(() => this.#borders[0]);
    values[this.last] = this.#borders[1];
    for (const [i, { ply, end }] of this.turns.entries()) {
      values.fill(verdicts[i].before, ply, end);
      if (end < this.last) values[end] = verdicts[i].after;
    }
    for (const { ply, end } of this.rolls) values.fill(values[ply], ply + 1, end);
    return values;
  }

  winrates(verdicts) {
    if (this.valuer.unit === "score") return this.values(verdicts);
    const sideOf = ({ toPlay }, value) => (1 + (toPlay ? -value : value)) / 2;
    return this.positions.map((position, ply) => {
      if (position.outcome !== ONGOING) return position.outcome === DRAW ? 0.5 : 1 - position.outcome;
      return this.#found.has(ply) ? sideOf(position, this.#found.get(ply).value) : null;
    });
  }

  draws() {
    return this.positions.map((_, ply) => this.#found.get(ply)?.draw ?? null);
  }

  leads() {
    return this.positions.map((position, ply) => (position.outcome === ONGOING ? leadIn(this.valuer.positions, position, this.#found.get(ply)) : null));
  }

  line(_, moves) {
    return moves; // the rolls after a turn are not known, so nothing is expected to follow
  }

  // Returns the turn that was played and those that searches of its positions suggest, with different ends, and their values.
  async #compared(turn, simulations) {
    const { positions } = this.valuer, compared = [turn.moves];
    for (const [i, position] of turn.positions.entries()) {
      if (positions.moves(position).length < 2) continue;
      const result = await this.valuer.search(position, simulations);
      this.#found.set(turn.ply + i, result);
      const suggested = result.moves.filter(({ visits }) => visits).sort((one, other) => other.visits - one.visits).slice(0, SUGGESTED + 1);
      for (const { line } of suggested) compared.push(await this.#wholeTurn(turn, [...turn.moves.slice(0, i), ...line]));
    }
    const ends = new Map();
    for (const moves of compared) {
      const end = moves.reduce((position, move) => positions.play(position, move), turn.positions[0]), key = end.state.join();
      if (!ends.has(key)) ends.set(key, { moves, value: await this.valuer.ofEnd(end, simulations) });
    }
    return [...ends.values()];
  }

  // Returns those of `moves` that belong to the turn, and what a short search adds until it is over.
  async #wholeTurn(turn, moves) {
    const played = [], rest = [...moves];
    let [position] = turn.positions;
    while (position.outcome === ONGOING && !isChance(position) && position.toPlay === turn.by) {
      if (!rest.length) rest.push((await this.valuer.search(position, COMPLETING)).best);
      played.push(rest.shift());
      position = this.valuer.positions.play(position, played.at(-1));
    }
    return played;
  }
}

// Returns the points by which player 0 leads, or is expected to; null where they are not known.
function leadIn({ rules, game }, { outcome, toPlay, state }, result) {
  if (outcome !== ONGOING) return game.maxScore ? (outcome === DRAW ? 0 : 1 - 2 * outcome) * rules.score(state) : null;
  if (!result || result.points === null) return null;
  return toPlay ? -result.points : result.points;
}

// --- the scale, and words ---

function marginOf({ margins }, simulations) {
  const known = Object.keys(margins).map(Number).sort((one, other) => one - other), [least] = known, most = known.at(-1);
  if (!known.length) return 0;
  const slope = known.length > 1 ? Math.log(margins[most] / margins[least]) / Math.log(most / least) : USUAL_SLOPE;
  return margins[most] * (Math.max(simulations, 1) / most) ** Math.min(slope, 0);
}

const lostBy = (turn, { before, after }) => Math.max(0, turn.sign * (before - after));
const kindOf = (lost, { spread }) => KINDS.find(([, share]) => lost >= share * spread)?.[0] ?? null;

// Returns the turns whose losses matter, and are not proven.
function mattering(judging, turns, { spread }, margin) {
  const verdicts = judging.verdicts(margin), losses = turns.map((turn, i) => lostBy(turn, verdicts[i]));
  const order = [...turns.keys()].sort((one, other) => losses[other] - losses[one]);
  const [, leastShare] = KINDS.at(-1);
  const matter = order.filter((i, rank) => losses[i] > 0 && (losses[i] >= (leastShare * spread) / 2 || rank < LARGEST) && !verdicts[i].isExact);
  return matter.map((i) => turns[i]);
}

// Returns the name of a turn that has lost so much; null if that is little, or not clear.
function mistakeOf(lost, margin, scale) {
  if (lost <= margin) return null;
  const kind = kindOf(lost, scale), atLeast = kindOf(lost - margin, scale);
  if (kind === "blunder" && atLeast !== "blunder") return atLeast === null ? "inaccuracy" : "mistake";
  return kind === "mistake" && atLeast === null ? "inaccuracy" : kind;
}

// Returns the mean accuracy of turns with these losses, in percent, as of plyzero/kits/review/scale.py; null without any.
function accuracyOf(losses, { spread }) {
  if (!losses.length) return null;
  const shares = losses.map((lost) => Math.min(100, Math.max(0, 103.1668 * Math.exp((-4.354 * lost) / spread) - 3.1669)));
  return shares.reduce((sum, each) => sum + each, 0) / shares.length;
}

function described({ positions, record, turns, rolls, scale, judging, judge, margin }) {
  const verdicts = judging.verdicts(margin), values = judging.values(verdicts), leads = judging.leads();
  const judged = turns.map((turn, i) => judgedTurn({ positions, turn, verdict: verdicts[i], scale, judging, margin, leads, after: record.positions[turn.end] }));
  const winrates = judging.winrates(verdicts), draws = judging.draws(), found = rolls.map(({ ply, end }) => ({ ply, end, luck: values[end] - values[ply] }));
  const outcome = positions.outcomeOf(record.positions.at(-1)), winner = record.resigned !== null ? 1 - record.resigned : outcome?.winner;
  const luck = found.reduce((sum, each) => sum + each.luck, 0);
  const players = [0, 1].map((side) => {
    const own = judged.filter(({ by }) => by === side), largest = own.filter(({ lost }) => lost > 0);
    largest.sort((one, other) => Number(other.clear) - Number(one.clear) || other.lost - one.lost);
    return {
      accuracy: rounded(accuracyOf(own.filter(({ hasChoice }) => hasChoice).map(({ lost }) => lost), scale), 1),
      lost: rounded(own.reduce((sum, { lost }) => sum + lost, 0), 6),
      luck: rounded(side ? -luck : luck, 6),
      largest: largest.slice(0, LARGEST).map((turn) => judged.indexOf(turn)),
    };
  });
  return {
    unit: scale.unit,
    judge: positions.game.review ? judge : `${judge} How much it errs in this game has not been measured.`,
    verdict: verdictOf(scale.unit, judged, players, found, winner === undefined || winner === null ? null : 1 - winner),
    scale: { random: rounded(scale.random ?? null, 1), bot: rounded(scale.bot ?? null, 1), ...Object.fromEntries(KINDS.map(([kind, share]) => [kind, rounded(share * scale.spread)])) },
    winner: winner === undefined ? null : ["first", "second"][winner] ?? "draw",
    players,
    turns: judged,
    rolls: found.map((each) => ({ ply: each.ply, plies: each.end - each.ply, luck: rounded(each.luck) })),
    plies: values.map((value, ply) => {
      const before = found.filter(({ end }) => end <= ply).reduce((sum, each) => sum + each.luck, 0);
      return { value: rounded(value), withoutLuck: rounded(value - before), winrate: rounded(winrates[ply]), drawrate: rounded(draws[ply]), lead: rounded(leads[ply], 2) };
    }),
  };
}

function judgedTurn({ positions, turn, verdict, scale, judging, margin, leads, after }) {
  const [before] = turn.positions, lost = lostBy(turn, verdict), uncertain = verdict.isExact ? 0 : margin;
  const best = ownMoves(positions, turn, verdict.best), differs = best.findIndex((move, i) => i < turn.moves.length && move !== turn.moves[i]);
  const hasLeads = leads[turn.ply] !== null && leads[turn.end] !== null;
  return {
    ply: turn.ply, plies: turn.moves.length, by: turn.by,
    moves: positions.namesOf(before, turn.moves),
    best: positions.namesOf(before, best),
    lost: rounded(lost), margin: rounded(uncertain), clear: lost > uncertain, mistake: mistakeOf(lost, uncertain, scale),
    points: lost && scale.unit === "score" && hasLeads ? rounded(Math.max(0, turn.sign * (leads[turn.ply] - leads[turn.end])), 1) : null,
    line: lost ? positions.line(before, judging.line(turn.ply, verdict.best)) : [],
    answer: lost ? positions.line(after, judging.line(turn.end, [])).slice(0, MAX_LINE) : [],
    choices: differs < 0 ? 0 : positions.moves(turn.positions[differs]).length,
    hasChoice: turn.positions.some((position) => positions.moves(position).length > 1),
  };
}

// Returns those of `moves`, from the beginning of a turn on, that belong to it.
function ownMoves(positions, turn, moves) {
  const own = [];
  let [position] = turn.positions;
  for (const move of moves) {
    if (position.toPlay !== turn.by || isChance(position)) break;
    own.push(move);
    position = positions.play(position, move);
  }
  return own;
}

// Returns in a sentence why a game was lost; "" for a draw, or if the game is not over.
function verdictOf(unit, judged, players, rolls, loser) {
  if (loser === null) return "";
  const named = `the ${["first", "second"][loser]} player`, Named = named.replace("the", "The");
  const number = (value) => (unit === "score" ? (100 * value).toFixed(0) : value.toFixed(2)).replace(/^-(0(\.0+)?)$/, "$1");
  const signed = (value) => (value > 0 ? "+" : "") + number(value), words = unit === "score" ? "percentage points" : "points";
  const clear = judged.filter((turn) => turn.by === loser && turn.clear), { luck, lost } = players[loser];
  if (!rolls.length) {
    const turns = clear.length === 1 ? "a turn that was clearly worse" : `${clear.length} turns that were clearly worse`;
    const sum = clear.reduce((total, each) => total + each.lost, 0);
    return clear.length ? `${Named} has lost ${number(sum)} ${words} by ${turns}.` : `The turns of ${named} were as good as the judge can tell.`;
  }
  const sums = `luck ${signed(luck)}, play ${signed(-lost)} ${words}`;
  if (!clear.length) return `The turns of ${named} were as good as the judge can tell${luck < 0 ? ", and luck decided" : ""}: ${sums}.`;
  if (luck >= 0) return `${Named} lost by play, not by luck: ${sums}.`;
  return -luck > lost ? `${Named} lost more by luck than by play: ${sums}.` : `${Named} lost more by play than by luck: ${sums}.`;
}
