// What the page says: functions of the position that is shown and of what is going on.

export const SIDES = ["first", "second"];

// colours: of the pieces, as /api/position tells them; null without a board.
export const sideName = (colours, side) => (colours ? capital(colours[side]) : `the ${SIDES[side]} player`);

export function nameOf(about, player) {
  if (player === "friend") return "the other player";
  return player === "you" ? "you" : about.players.find(({ id }) => id === player)?.name ?? player;
}

const spoken = (about, player) => nameOf(about, player).replace(/, .*$/, "");

// Names such as "the network" begin a sentence with a capital letter; those of agents, such as pairs:Pairs, stay.
export const capital = (sentence) => (/^[a-z]+([-, ]|$)/.test(sentence) ? sentence[0].toUpperCase() + sentence.slice(1) : sentence);

const needsNetwork = (player) => /^(net|level):/.test(player);

// Whether a player moves now, and not only once the search is prepared.
export const canSearch = (about, player) => about.ready || about.playsMeanwhile || !needsNetwork(player);

// The positions one can step to: those in which a player moves, and the last one.
export const stepsOf = (movers) => [...movers.keys(), movers.length].filter((at) => movers[at] !== null);

// "You play throw. 3 was rolled. The network plays step.": from the person's last move before the position on.
export function lastMoves({ about, position, players }) {
  const movers = position.movers.slice(0, position.at), moved = movers.findLastIndex((by) => by !== null);
  const mine = movers.findLastIndex((by) => by !== null && players[by] === "you" && players[1 - by] !== "you");
  const sentences = [];
  let rolls = [];
  const endRolls = () => {
    if (rolls.length) sentences.push(`${rolls.join(" ")} ${rolls.length > 1 ? "were" : "was"} rolled.`);
    rolls = [];
  };
  for (let ply = Math.max(0, mine < 0 ? moved : mine); ply < movers.length; ply++) {
    if (ply === 0 && position.setup) {
      sentences.push(`${capital(position.setup)}.`);
      continue;
    }
    if (movers[ply] === null) {
      rolls.push(position.moves[ply]);
      continue;
    }
    endRolls();
    const player = players[movers[ply]], both = players[0] === players[1];
    const who = both ? `${capital(sideName(position.colours, movers[ply]))} plays` : player === "you" ? "You play" : `${capital(spoken(about, player))} plays`;
    sentences.push(`${who} ${position.written[ply]}.`);
  }
  endRolls();
  return sentences.join(" ");
}

// game: moves and resigned. position: as the server describes it, at its `at`. players: of both sides.
export function statusOf({ about, position, game, players }) {
  const moves = lastMoves({ about, position, players });
  const steps = stepsOf(position.movers), both = players[0] === players[1];
  if (position.at < position.movers.length) {
    const player = players[position.toPlay];
    const mover = both ? sideName(position.colours, position.toPlay) : spoken(about, player);
    return `${moves} This is position ${steps.indexOf(position.at)} of ${steps.length - 1}: ${mover} ${mover === "you" ? "were" : "was"} to move.`.trim();
  }
  return `${moves} ${nowIn({ about, position, game, players, both })}`.trim();
}

function nowIn({ about, position, game, players, both }) {
  const person = players.includes("you"), named = (side) => capital(sideName(position.colours, side));
  if (game.timeOver) return timeIsOver(game.resigned, players, named);
  const review = person && about.ready ? " Review the game to find the mistakes." : "";
  if (game.resigned !== null) return `${both ? named(game.resigned) : capital(spoken(about, players[game.resigned]))} resigned.${review}`;
  if (position.outcome) {
    const { winner, score } = position.outcome;
    const by = score ? ` by ${score} point${score === 1 ? "" : "s"}` : "";
    if (winner === null) return `The game is drawn.${review}`;
    if (person && !both) return `${players[winner] === "you" ? "You have won" : "You have lost"}${by}.${review}`;
    return `${named(winner)} has won${by}.${review}`;
  }
  const mover = players[position.toPlay];
  const begins = position.toPlay === 1 && position.movers.every((by) => by === null) ? ` ${named(1)} begins.` : ""; // by dice
  const bots = players.some((player) => player !== "you"), less = bots && about.playsMeanwhile ? "; the bot thinks less until then" : "";
  const waits = about.ready ? "" : ` ${capital(about.waitsFor)}${less}.`;
  const pure = about.hasRun && !about.hasNetwork && !position.movers.length && players.some((player) => player.startsWith("mcts:")) ? " Pure MCTS plays by the same rules until the run has a model, which then takes its place." : "";
  if (mover === "friend") return both ? `${named(position.toPlay)} is to move.${begins}` : `It is the other player's move.${begins}`;
  if (mover === "you") return `${both ? `${named(position.toPlay)} is to move.` : "It is your move."}${begins}${pure}${waits}`;
  return `${canSearch(about, mover) ? `${capital(spoken(about, mover))} is searching.` : ""}${begins}${pure}${waits}`.trim();
}

function timeIsOver(loser, players, named) {
  if (players[0] === players[1]) return `${named(loser)}'s time has run out; ${named(1 - loser)} has won.`;
  return players[loser] === "you" ? "Your time has run out; you have lost." : "The other player's time has run out; you have won.";
}
