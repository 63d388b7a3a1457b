// Games with variations and comments from SGF, the files of programs for go, hex and gomoku.

// The first game of a file, as parseGames() returns one. about: `sgf` of /api/about. Throws an Error with a sentence.
export function readSgf(text, about) {
  const tokens = /\s*(?:([();])|([A-Za-z]+)\s*|\[((?:\\[\s\S]|[^\]\\])*)\]\s*)/y;
  const names = new Map(Object.entries(about.names));
  const lines = [], comments = {}, begun = [];  // begun: the moves before each open parenthesis
  let moves = [], node = {}, property = "", isLeaf = true, note = "";

  function endNode() {
    for (const [key, side] of [["B", 0], ["W", 1]]) {
      if (!(key in node)) continue;
      if (moves.length % 2 !== side) throw new Error(`expected B and W in turn, got ${key} as move ${moves.length + 1}.`);
      const point = node[key].trim();
      const lower = point.toLowerCase();
      moves = [...moves, names.get(point) ?? names.get(lower) ?? lower];
    }
    const placed = ["AB", "AW", "AE"].find((key) => key in node);
    if (placed) throw new Error(`expected a game from the initial position, got stones that are placed, ${placed}.`);
    for (const key of ["GM", "SZ"]) {
      if (node[key] && node[key] !== about[key]) throw new Error(`expected ${key}[${about[key]}], got ${key}[${node[key]}]: another ${key === "GM" ? "game" : "size"}.`);
    }
    if (node.KM && Number(node.KM) !== Number(about.KM ?? 0)) note = ` Its komi is ${node.KM}, here it is ${about.KM ?? 0}.`;
    if (node.C) comments[moves.join(" ")] = node.C.replace(/\s+/g, " ").slice(0, 500);
    node = {};
  }

  do {
    const found = tokens.exec(text);
    if (!found) throw new Error("expected a game as SGF, which ends with a parenthesis.");
    const [, sign, name, value] = found;
    if (name) property = name.replace(/[a-z]/g, "");
    else if (value !== undefined) node[property] ??= value.replace(/\\(\r\n|\n|\r)/g, "").replace(/\\([\s\S])/g, "$1");
    else {
      endNode();
      if (sign === "(") begun.push(moves);
      if (sign === ")") {
        if (isLeaf) lines.push(moves);
        moves = begun.pop();
      }
      isLeaf = sign !== ")";
    }
  } while (begun.length);
  return { moves: lines[0], variations: lines.slice(1), comments, note };
}
