// The rules of a game, as a WebAssembly module that plyzero has compiled from its Python source.
//
// A position is a Uint8Array of game.stateBytes bytes, and none of these methods changes it. `game` describes the module:
//   stateBytes   length of a position           start        the position at the beginning, as numbers
//   toPlay       byte with the player to move   actions      number of actions: moves and rolls are numbers from 0
//   observation  [C, H, W], what a network sees numChances   number of rolls; 0 = a game without dice
//   maxScore     largest number of points by which a player can win; 0 = a game without points

export const ONGOING = -2;
export const DRAW = -1;  // the other outcomes are the winner: 0 or 1
export const MAX_ROLLS = 1024;  // between two moves

const PAGE = 65536;  // bytes of a page of WebAssembly's memory
const EXPORTED = ["memory", "__heap_base", "play", "outcome", "legal", "observe"];

// Returns the rules. Throws an Error that names what is missing if `bytes` is no module of a game's rules.
export async function loadRules(bytes, game) {
  const module = await WebAssembly.compile(bytes);
  const { exports } = await WebAssembly.instantiate(module, throwingImports(module));
  const expected = [...EXPORTED, ...(game.numChances ? ["chances"] : []), ...(game.maxScore ? ["score"] : [])];
  const missing = expected.filter((name) => !(name in exports));
  if (missing.length) throw new Error(`Expected a module of rules that exports ${missing.join(", ")}; compile the game again.`);
  return new Rules(exports, game);
}

// What the module imports is of Python's runtime, and is called only where the rules raise an error.
function throwingImports(module) {
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = () => {
      throw new Error(`The rules called ${name}, which exists only in Python: do they raise an error?`);
    };
  }
  return imports;
}

class Rules {
  #exports;
  #state;  // addresses in the module's memory: of a position,
  #mask;  // the mask of legal actions,
  #floats;  // and numbers: an observation, or the probabilities of rolls

  constructor(exports, game) {
    const [channels, height, width] = game.observation;
    this.game = game;
    this.start = Uint8Array.from(game.start);
    this.observationSize = channels * height * width;
    this.#exports = exports;
    this.#state = aligned(exports.__heap_base.value);
    this.#mask = aligned(this.#state + game.stateBytes);
    this.#floats = aligned(this.#mask + game.actions);
    const end = this.#floats + 4 * Math.max(this.observationSize, game.numChances);
    const missing = end - exports.memory.buffer.byteLength;
    if (missing > 0) exports.memory.grow(Math.ceil(missing / PAGE));
  }

  // Returns the player to move, 0 or 1.
  toPlay(state) {
    return state[this.game.toPlay];
  }

  // Returns the position after `action`, which is a legal move or a possible roll.
  play(state, action) {
    this.#put(state);
    this.#exports.play(this.#state, BigInt(action));
    return this.#bytes(this.#state, this.game.stateBytes).slice();
  }

  // Returns ONGOING, DRAW or the winner.
  outcome(state) {
    this.#put(state);
    return Number(this.#exports.outcome(this.#state));
  }

  // Returns the legal actions, ascending, of a position in which a player moves.
  legal(state) {
    this.#put(state);
    const mask = this.#bytes(this.#mask, this.game.actions).fill(0);
    this.#exports.legal(this.#state, this.#mask);
    const actions = [];
    for (let action = 0; action < mask.length; action++) if (mask[action]) actions.push(action);
    return actions;
  }

  // Returns what the network sees of a position in which a player moves: C * H * W numbers, in a new array.
  observe(state) {
    this.#put(state);
    const planes = this.#numbers(this.observationSize).fill(0);
    this.#exports.observe(this.#state, this.#floats);
    return planes.slice();
  }

  // Returns the probability of each roll if chance moves in a position that is not over; null if a player moves.
  chances(state) {
    const { numChances } = this.game;
    if (!numChances) return null;
    this.#put(state);
    const weights = this.#numbers(numChances).fill(0);
    this.#exports.chances(this.#state, this.#floats);
    return weights.some((weight) => weight !== 0) ? weights.slice() : null;
  }

  // Returns the points by which the winner of a finished game leads; 0 in a game without points.
  score(state) {
    if (!this.game.maxScore) return 0;
    this.#put(state);
    return this.#exports.score(this.#state);
  }

  #put(state) {
    this.#bytes(this.#state, this.game.stateBytes).set(state);
  }

  #bytes(address, length) {
    return new Uint8Array(this.#exports.memory.buffer, address, length);
  }

  #numbers(length) {
    return new Float32Array(this.#exports.memory.buffer, this.#floats, length);
  }
}

const aligned = (address) => (address + 15) & ~15;
