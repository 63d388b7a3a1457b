// Writes the text of the first item of a table in each of `states`. Reads one JSON object from standard input, {page, table, states}.

import { readFileSync } from "node:fs";

const { page, table, states } = JSON.parse(readFileSync(0, "utf8"));
const { textOf } = await import(`${page}/positions.js`);
process.stdout.write(JSON.stringify(states.map((state) => textOf(table, 0, Uint8Array.from(state)))));
