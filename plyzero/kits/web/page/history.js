// The game that the page shows, which is its address, and what a person does as entries of the browser's history.

import { useEffect, useRef, useState } from "./html.js";
import { readAddress, writeAddress } from "./address.js";

const NEW_GAME = { moves: [], at: 0, resigned: null, timeOver: false, lines: [], notes: {}, start: "", shared: "", clock: "", left: null, names: [] };

// usual: the opponent of a new game, undefined until it is known.
// change(fields), go(fields): show something else; only what go does is an entry of the history. fields may be a function.
// play(name), follow(moves, at): go on with another move, or another line. begin(fields): a new game, which is returned.
export function useGame(usual) {
  const [game, setGame] = useState(readAddress), visit = useRef(false);
  const change = (fields) => setGame((now) => ({ ...now, ...(typeof fields === "function" ? fields(now) : fields) }));
  function go(fields) {
    visit.current = true;
    change(fields);
  }

  useEffect(() => {
    const onAddress = () => setGame(readAddress());
    addEventListener("hashchange", onAddress);
    return () => removeEventListener("hashchange", onAddress);
  }, []);

  useEffect(() => {
    if (!usual) return;
    writeAddress({ ...game, second: game.second ?? usual }, visit.current);
    visit.current = false;
  }, [usual, game]);

  function play(name, show = go) {
    const isLast = game.at === game.moves.length;
    if (game.moves[game.at] === name) show({ at: game.at + 1 });
    else follow([...game.moves.slice(0, game.at), name], game.at + 1, (fields) => show({ ...fields, ...(isLast ? {} : { clock: "", left: null }) }));
  }

  // Show another line; the one before stays as a variation, unless the other continues it.
  function follow(moves, at, show = go) {
    const lines = [...game.lines, game.moves].filter((line) => !line.every((name, i) => name === moves[i]));
    show({ moves, at, resigned: null, timeOver: false, lines: lines.slice(-20) });
  }

  function begin(fields) {
    const next = { ...NEW_GAME, ...fields };
    go(next);
    return next;
  }

  return { game, change, go, play, follow, begin };
}
