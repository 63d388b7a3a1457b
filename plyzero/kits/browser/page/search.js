// Monte Carlo tree search guided by a network: PUCT (AlphaZero: Silver et al., 2018, "Methods, Search"), as plyzero.search
// does it in Python, with the same formulas. A simulation runs from the root to a leaf s_L; N(s, a) counts visits, W(s, a)
// sums their values, Q = W / N, P is the prior; N(s) = 1 + Σ_b N(s, b), where the 1 is the position's own evaluation.
// Values are for the player to move at the node in question, +1 = wins; a player may move twice.

import { DRAW, MAX_ROLLS, ONGOING } from "./wasm.js";

export const DEFAULTS = { cPuct: 1.25, fpuReduction: 0.25, allRolls: false };  // as plyzero.settings.SearchSettings

// Searches the position `state`, which is not over and in which a player moves. Returns what `resultOf` describes; the same
// arguments give the same result.
//   rules        of wasm.js
//   evaluate     (observations: Float32Array of count positions, count) -> Promise<{logits, wdl, points?}>, Float32Arrays: per
//                position the logits of all actions, the probabilities of win, draw and loss for its player to move, and the
//                points by which that player is expected to win
//   simulations  the most that are made; the search ends before that once the root's value is proven
//   leaves       the most that are evaluated together
//   onBatch      called with the tree before each evaluation but the first, and may be async; if it returns true, the search
//                ends with what it has found; resultOf(tree) is what that is so far
export async function search(rules, state, evaluate, { simulations, leaves = 1, onBatch = () => false, ...settings }) {
  const tree = new Tree(rules, state, { ...DEFAULTS, ...settings });
  await evaluateLeaves(tree, [tree.root], evaluate);
  const isDone = () => tree.simulations >= simulations || tree.root.proven !== UNPROVEN;
  while (!isDone() && !(await onBatch(tree))) {
    const batch = collect(tree, isDone, tree.settings.allRolls ? 1 : leaves);
    if (batch.rolling) await rollInFull(tree, batch.rolling, evaluate);
    else if (batch.length) await evaluateLeaves(tree, batch, evaluate);
  }
  return resultOf(tree);
}

// --- one simulation: select, expand, evaluate, back up ---

// Walks from `node` to a position without an evaluation, and returns it: a new leaf, one that already waits for its evaluation,
// or a new chance node whose rolls are all to be evaluated. Where the simulation ends at a known value, it is backed up up to
// the node `top`, and null is returned.
function simulate(tree, { node = tree.root, edge = select(tree, node), top = null } = {}) {
  for (;;) {
    if (edge.proven === UNPROVEN && !edge.child) expand(tree, node, edge);
    if (edge.proven !== UNPROVEN) {
      backUp(node, edge, { value: edge.proven, draw: edge.proven === PROVEN_DRAW ? 1 : 0, points: edge.points }, top);
      prove(node);
      tree.simulations += top ? 0 : 1;
      return null;
    }
    const { child } = edge;
    if (child.isExact) {
      backUp(node, edge, meanOf(child, node), top);
      tree.simulations += top ? 0 : 1;
      return null;
    }
    if (child.visits === 0 && (!child.isChance || isRolledInFull(tree, child))) return child;
    node = child;
    edge = select(tree, node);
  }
}

function select(tree, node) {
  return node.isChance ? selectRoll(node) : selectMove(node, tree.settings, node === tree.root);
}

// Returns argmax_a Q(s, a) + U(s, a), U = c_puct · P(s, a) · √N(s) / (1 + N(s, a)). An action that was never tried gets the
// node's value for Q, less a reduction that grows with the prior mass already tried (first-play urgency); at the root there is
// no reduction. Proven losses are not selected: a node whose moves all lose is proven, and no simulation reaches it.
function selectMove(node, { cPuct, fpuReduction }, isRoot) {
  let tried = 0;
  for (const edge of node.edges) if (edge.visits) tried += edge.prior;
  const untried = node.valueSum / node.visits - (isRoot ? 0 : fpuReduction * Math.sqrt(tried));
  const explore = cPuct * Math.sqrt(node.visits);
  let best = node.edges[0], bestScore = -Infinity;
  for (const edge of node.edges) {
    if (edge.proven === PROVEN_LOSS) continue;
    let q = untried;
    if (edge.proven !== UNPROVEN) q = edge.proven;
    else if (edge.visits) q = edge.valueSum / edge.visits;
    const score = q + explore * edge.prior / (1 + edge.visits);
    if (score > bestScore) {
      best = edge;
      bestScore = score;
    }
  }
  return best;
}

// Returns the roll whose turn it is, so that visits stay near P(s, a) · N(s). The i-th visit takes the roll at frac(u + i · φ),
// φ the golden ratio, on the line on which each roll is as long as probable; u depends on the node's number alone.
function selectRoll(node) {
  let left = node.firstRoll + node.visits * GOLDEN_RATIO;
  left -= Math.floor(left);
  const { edges } = node;
  for (let i = 0; i < edges.length - 1; i++) {
    left -= edges[i].prior;
    if (left < 0) return edges[i];
  }
  return edges[edges.length - 1];
}

// Adds the position after `edge` to the tree: as a node with its edges, or as a proven value if the game is over.
function expand(tree, node, edge) {
  const { rules } = tree;
  const state = rules.play(node.state, edge.action), outcome = rules.outcome(state);
  if (outcome === ONGOING) {
    edge.child = tree.addNode(state, node, edge);
    return;
  }
  edge.proven = PROVEN_DRAW;
  if (outcome !== DRAW) edge.proven = outcome === node.toPlay ? PROVEN_WIN : PROVEN_LOSS;
  edge.plies = node.isChance ? 0 : 1;
  edge.points = edge.proven * rules.score(state);
}

// Evaluates the leaves together, and backs up their values one after the other, up to the node `top`.
async function evaluateLeaves(tree, batch, evaluate, top = null) {
  const { observationSize, game } = tree.rules;
  const observations = new Float32Array(batch.length * observationSize);
  for (const [i, leaf] of batch.entries()) observations.set(tree.rules.observe(leaf.state), i * observationSize);
  const { logits, wdl, points } = await evaluate(observations, batch.length);
  if (!logits.every(Number.isFinite) || !wdl.every(Number.isFinite)) throw new Error("The network returned numbers that are not finite; share the game with another model.");
  tree.hasPoints = points !== undefined;
  batch.forEach((leaf, i) => {
    setPriors(leaf, logits.subarray(i * game.actions, (i + 1) * game.actions));
    const [win, draw, loss] = wdl.subarray(3 * i, 3 * i + 3);
    const opinion = { value: Math.fround(win - loss), draw, points: points ? points[i] : 0 };
    leaf.add(opinion);
    leaf.opinion = opinion;
    if (!leaf.parent) return;
    backUp(leaf.parent, leaf.edge, seenFrom(leaf.parent, leaf, opinion), top);
    tree.simulations += top ? 0 : 1;
  });
}

// Sets P(s, a), the softmax of the logits over the legal actions, in single precision as in Python.
function setPriors(node, logits) {
  const highest = node.edges.reduce((most, { action }) => Math.max(most, logits[action]), -Infinity);
  let total = 0;
  for (const edge of node.edges) {
    edge.prior = Math.fround(Math.exp(Math.fround(logits[edge.action] - highest)));
    total += edge.prior;
  }
  for (const edge of node.edges) edge.prior = Math.fround(edge.prior / total);
}

// Adds one visit and the leaf's opinion to every edge and node from `edge` below `node` up to the root, or to the edge below
// `top`. The sign turns where the player to move turns, not at every ply. Above a chance node whose rolls all have a value, the
// simulation adds what makes the sum N(s) · Σ_r P(r) Q(r).
function backUp(node, edge, opinion, top = null) {
  for (;;) {
    edge.visits += 1;
    edge.valueSum += opinion.value;
    if (node === top) return;
    if (node.inFull) opinion = missingTo(expectation(node), node);
    node.add(opinion);
    if (!node.parent) return;
    opinion = seenFrom(node.parent, node, opinion);
    edge = node.edge;
    node = node.parent;
  }
}

// Returns the opinion on `node`, for its player, as one for the player of `other`.
function seenFrom(other, node, { value, draw, points }) {
  return other.toPlay === node.toPlay ? { value, draw, points } : { value: -value, draw, points: -points };
}

function meanOf(node, above) {
  const mean = { value: node.valueSum / node.visits, draw: node.drawSum / node.visits, points: node.pointsSum / node.visits };
  const { value, draw, points } = seenFrom(above, node, mean);
  return { value: Math.fround(value), draw: Math.fround(draw), points };
}

// --- many leaves in a batch ---

const VIRTUAL_LOSS = 0.3;

// Returns up to `most` leaves, no leaf twice; fewer if the next simulation would end at one of them. Until it is evaluated, a
// leaf counts as visited, with the mean value of the node above it less VIRTUAL_LOSS, which leads the next simulations to other
// leaves (Chaslot et al., 2008). This is taken back at the end. A chance node that is to be rolled in full is in `rolling`.
function collect(tree, isDone, most) {
  const batch = [], values = [], began = tree.simulations;
  while (!isDone()) {
    const leaf = simulate(tree);
    if (leaf?.isChance) return Object.assign(batch, { rolling: leaf });
    if (leaf?.waits) break;
    if (leaf && most === 1) return [leaf];
    if (leaf) {
      leaf.waits = true;
      const known = leaf.parent.visits ? leaf.parent : tree.root;  // a chance node may have no visit yet
      const mean = known.valueSum / known.visits;
      values.push(known.toPlay === leaf.parent.toPlay ? mean : -mean);
      batch.push(leaf);
      count(tree, leaf, values.at(-1), 1);
    }
    // Simulations that end at known values could otherwise go on forever.
    if (batch.length === most || (batch.length && tree.simulations >= began + most)) break;
  }
  batch.forEach((leaf, i) => {
    count(tree, leaf, values[i], -1);
    leaf.waits = false;
  });
  return batch;
}

// Lets a simulation that ends at `leaf` count once, before its value is known, or -1 times to take that back.
function count(tree, leaf, value, times) {
  tree.simulations += times;
  let { parent: node, edge } = leaf;
  while (node) {
    edge.visits += times;
    edge.valueSum += times * (value - VIRTUAL_LOSS);
    node.visits += times;
    node.valueSum += times * value;
    if (node.parent && node.parent.toPlay !== node.toPlay) value = -value;
    edge = node.edge;
    node = node.parent;
  }
}

// --- dice ---

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
const MAX_IN_FULL = 36;  // rolls of a chance node that are evaluated in full: those of two dice

// Whether each roll of the chance node `node` is evaluated at once. Of a roll that follows a roll, one is taken: there the rolls
// would multiply.
function isRolledInFull({ settings }, node) {
  return settings.allRolls && node.edges.length <= MAX_IN_FULL && !node.parent.isChance;
}

// Makes the first simulation at the chance node `node`, whose value is Σ_r P(r) Q(r) from now on.
async function rollInFull(tree, node, evaluate) {
  node.inFull = true;
  const batch = node.edges.map((edge) => simulate(tree, { node, edge, top: node })).filter(Boolean);
  if (batch.length) await evaluateLeaves(tree, batch, evaluate, node);
  const { value, draw, points } = expectation(node);
  Object.assign(node, { visits: 1, valueSum: value, drawSum: draw, pointsSum: points });
  backUp(node.parent, node.edge, meanOf(node, node.parent));
  if (node.edge.proven !== UNPROVEN) prove(node.parent);
  tree.simulations += 1;
}

// Returns Σ_r P(r) Q(r) over the rolls of a chance node.
function expectation(node) {
  let total = 0, value = 0, draw = 0, points = 0;
  for (const edge of node.edges) {
    const ofRoll = opinionAfter(node, edge);
    total += edge.prior;
    value += edge.prior * ofRoll.value;
    draw += edge.prior * ofRoll.draw;
    points += edge.prior * ofRoll.points;
  }
  return { value: value / total, draw: draw / total, points: points / total };
}

// Returns the opinion after a roll: the proven one, else the means of the simulations. A roll that no simulation has taken has
// those of the node.
function opinionAfter(node, edge) {
  const points = edge.child?.visits ? meanOf(edge.child, node).points : edge.points;
  if (edge.proven !== UNPROVEN) return { value: edge.proven, draw: edge.proven === PROVEN_DRAW ? 1 : 0, points };
  const { visits, valueSum, child } = edge;
  if (visits) return { value: valueSum / visits, draw: child.drawSum / child.visits, points };
  return { value: node.valueSum / node.visits, draw: node.drawSum / node.visits, points: node.pointsSum / node.visits };
}

// Returns what one more visit must add to the sums of `node`, so that their mean is `mean`.
function missingTo(mean, node) {
  const visits = node.visits + 1;
  return { value: mean.value * visits - node.valueSum, draw: mean.draw * visits - node.drawSum, points: mean.points * visits - node.pointsSum };
}

// --- proofs: exact values of decided positions, and exact expectations over rolls ---

export const PROVEN_LOSS = -1;
export const PROVEN_DRAW = 0;
export const PROVEN_WIN = 1;
export const UNPROVEN = 2;

const MAX_DISTANCE = 32767;  // plies

// Proves what follows at `node` and above: a winning move proves a win, else the best of moves all proven. Chance does not
// choose, so rolls prove a value only if all of them lead to it; if all are proven but differ, their expectation is exact. A win
// lasts as long as the shortest of the winning moves that are known, a loss as the longest move; rolls are no plies.
function prove(node) {
  for (; node; node = node.parent) {
    const proven = node.edges.filter((edge) => edge.proven !== UNPROVEN), isWhole = proven.length === node.edges.length;
    const values = proven.map((edge) => edge.proven);
    const best = Math.max(PROVEN_LOSS, ...values), worst = Math.min(PROVEN_WIN, ...values);
    if (!isWhole && (node.isChance || best !== PROVEN_WIN)) return;
    if (node.isChance && best !== worst) return setExpectation(node);
    const wins = proven.filter((edge) => edge.proven === PROVEN_WIN).map(({ plies }) => plies);
    node.proven = best;
    node.plies = best === PROVEN_WIN && !node.isChance ? Math.min(...wins) : Math.max(...proven.map(({ plies }) => plies));
    const { parent, edge } = node;
    if (!parent) return;
    edge.proven = parent.toPlay === node.toPlay || best === PROVEN_DRAW ? best : -best;
    edge.plies = parent.isChance ? node.plies : Math.min(node.plies + 1, MAX_DISTANCE);
  }
}

// Gives a chance node whose rolls are all proven, and the edge that leads to it, their exact expected value.
function setExpectation(node) {
  const { value, draw } = expectation(node), { edge, parent } = node;
  node.valueSum = value * node.visits;
  node.drawSum = draw * node.visits;
  node.isExact = true;
  node.inFull = true;  // leaves below may still wait for the network: their values must not change this one
  edge.valueSum = edge.visits * (parent.toPlay === node.toPlay ? value : -value);
}

// --- the tree ---

class Tree {
  #nodes = 0;

  constructor(rules, state, settings) {
    if (rules.outcome(state) !== ONGOING || rules.chances(state)) throw new Error("Expected a position in which a player moves.");
    this.rules = rules;
    this.settings = settings;
    this.simulations = 0;
    this.hasPoints = false;  // whether the network expects points
    this.root = this.addNode(state, null, null);
  }

  // Returns a new node, with an edge for each legal action or possible roll, in ascending order.
  addNode(state, parent, edge) {
    const node = new Node(state, this.rules.toPlay(state), parent, edge);
    const weights = this.rules.chances(state);
    if (weights) {
      node.isChance = true;
      node.firstRoll = randomBits(this.#nodes) / 2 ** 32;
      weights.forEach((weight, roll) => {
        if (weight) node.edges.push(new Edge(roll, weight));
      });
      limitRolls(node);
    } else {
      node.edges = this.rules.legal(state).map((action) => new Edge(action, 0));
    }
    if (!node.edges.length) throw new Error("A position is not over, but has no legal action.");
    this.#nodes += 1;
    return node;
  }
}

// A position s. The sums are over visits, for the player to move.
class Node {
  constructor(state, toPlay, parent, edge) {
    this.state = state;
    this.toPlay = toPlay;
    this.parent = parent;
    this.edge = edge;  // the parent's edge that leads here
    this.edges = [];
    this.opinion = null;  // of the network
    this.visits = 0;
    this.valueSum = 0;
    this.drawSum = 0;
    this.pointsSum = 0;
    this.proven = UNPROVEN;
    this.plies = 0;  // if a win or a loss is proven: the game is over in so many plies or fewer
    this.waits = false;  // for its evaluation
    this.isChance = false;
    this.isExact = false;  // the mean value is the expectation over rolls that are all proven
    this.inFull = false;  // a chance node with a value for each roll: the mean value is their expectation
  }

  add({ value, draw, points }) {
    this.visits += 1;
    this.valueSum += value;
    this.drawSum += draw;
    this.pointsSum += points;
  }
}

// One legal action, or roll, a in a position s.
class Edge {
  constructor(action, prior) {
    this.action = action;
    this.child = null;
    this.visits = 0;  // N(s, a)
    this.valueSum = 0;  // W(s, a), for the player who moves at s
    this.prior = prior;  // P(s, a)
    this.proven = UNPROVEN;
    this.plies = 0;  // as of a node, this one counted
    this.points = 0;  // of the player who moves at s, if the game is over after it
  }
}

function limitRolls(node) {
  let rolls = 0;
  for (; node?.isChance; node = node.parent) rolls += 1;
  if (rolls > MAX_ROLLS) throw new Error(`After ${MAX_ROLLS} rolls no player is to move: does play() end the roll?`);
}

// Returns 32 random bits that belong to a number: plyzero.rules.counter_rng.random_bits(number, 0).
function randomBits(number) {
  return finalizer(finalizer(finalizer(number)) ^ finalizer(0));
}

// The finalizer of MurmurHash3 (Appleby, 2011).
function finalizer(word) {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}

// --- the result ---

// Returns what the search has found so far, for the player to move:
//   value, draw     expected value from -1 to 1, and probability of a draw; exact where proven
//   points          by which the player wins in the end on average; null if the network knows no points
//   networkValue    the network's value of the position
//   proven, plies   "win", "draw", "loss" or null; the most plies that are left if the winner hurries, null if unknown
//   simulations     the number made
//   best            the action to play: the most visited one that the policy allows, the fastest proven win, the longest resistance
//   moves           for each legal action: action, visits, prior, q, mean (null where never visited; q is exact where proven),
//                   policy, proven, plies, points (null if unknown), line (the most visited actions, itself first)
export function resultOf({ root, simulations, hasPoints }) {
  const policy = policyOf(root), isProven = root.proven !== UNPROVEN;
  const moves = root.edges.map((edge, i) => ({
    action: edge.action,
    visits: edge.visits,
    prior: edge.prior,
    q: edge.proven !== UNPROVEN ? edge.proven : meanValue(edge),
    mean: meanValue(edge),
    policy: policy[i],
    proven: nameOf(edge.proven),
    plies: Math.abs(edge.proven) === PROVEN_WIN ? edge.plies : null,
    points: pointsAfter(edge, root, hasPoints),
    line: lineOf(edge),
  }));
  return {
    value: isProven ? root.proven : root.valueSum / root.visits,
    draw: isProven ? Number(root.proven === PROVEN_DRAW) : root.drawSum / root.visits,
    points: hasPoints ? root.pointsSum / root.visits : null,
    networkValue: root.opinion.value,
    proven: nameOf(root.proven),
    plies: isProven && root.proven !== PROVEN_DRAW ? root.plies : null,
    simulations,
    best: bestOf(root, moves),
    moves,
  };
}

const nameOf = (proven) => ({ [PROVEN_WIN]: "win", [PROVEN_DRAW]: "draw", [PROVEN_LOSS]: "loss" })[proven] ?? null;
const meanValue = (edge) => (edge.visits ? edge.valueSum / edge.visits : null);

// Returns the points after a move: what the game has ended with, else the expected ones, or null.
function pointsAfter(edge, root, hasPoints) {
  if (!edge.child) return edge.proven === UNPROVEN ? null : edge.points;
  return hasPoints && edge.child.visits ? meanOf(edge.child, root).points : null;
}

// Returns π(a) = N(a) / Σ_b N(b), without moves that are proven to lose unless all do. If the position is proven, the moves that
// reach its value share all of it. Where no other move was visited, the others get their prior.
function policyOf(root) {
  const isLost = (edge) => edge.proven === PROVEN_LOSS && root.proven !== PROVEN_LOSS;
  const weigh = (weightOf) => root.edges.map((edge) => (isLost(edge) ? 0 : weightOf(edge)));
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  let weights = weigh(root.proven !== UNPROVEN ? (edge) => Number(edge.proven === root.proven) : (edge) => edge.visits);
  if (!sum(weights)) weights = weigh(({ prior }) => Math.max(prior, 1e-30));
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

// Returns the action to play. Among draws it is the one that looked best before it was proven: there the other side has the most
// ways to go wrong.
function bestOf({ proven }, moves) {
  const haste = ({ plies, mean }) => {
    if (proven === PROVEN_WIN) return -(plies ?? Infinity);
    if (proven === PROVEN_LOSS) return plies ?? Infinity;
    return proven === PROVEN_DRAW ? mean ?? -Infinity : 0;
  };
  const ranks = (move) => [haste(move), move.visits, move.policy, move.q ?? -1, move.prior];
  const isBetter = (one, other) => {
    const a = ranks(one), b = ranks(other), i = a.findIndex((rank, at) => rank !== b[at]);
    return i < 0 || a[i] > b[i];
  };
  const allowed = moves.filter(({ policy }) => policy > 0);
  return allowed.reduce((best, move) => (isBetter(move, best) ? move : best)).action;
}

// Returns the most visited actions from `edge` on, until chance moves.
function lineOf(edge) {
  const line = [];
  while (edge) {
    line.push(edge.action);
    const next = edge.child && !edge.child.isChance ? edge.child.edges : [];
    edge = next.reduce((most, each) => (each.visits > (most?.visits ?? 0) ? each : most), null);
  }
  return line;
}
