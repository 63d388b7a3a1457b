"""Print what learn.py has written as tables: the median of the seeds, and how far they and chance reach.

python -m benchmarks.strength.page benchmarks/results/learning.jsonl > benchmarks/results/learning.md
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any


def main() -> None:
    """Print a table for every game, exam and choice of options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="FILE")
    given = parser.parse_args()

    results = [json.loads(line) for line in given.results.read_text(encoding="utf-8").splitlines()]
    tables: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for exam in result["scores"]:
            tables[result["game"], exam, " ".join(result["options"])].append(result)
    print("# What is learned in how many minutes\n")
    for (game, exam, options), rows in tables.items():
        print(f"## {game}, {exam}{f', {options}' if options else ''}\n")
        print(table(exam, rows))


def table(exam: str, rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a row per budget: median, lowest and highest seed, mean interval of a single one."""
    simulations = [report["simulations"] for report in rows[0]["scores"][exam]]
    heads = ["raw network" if number == 0 else f"{number} simulations" for number in simulations]
    lines = [f"| minutes | seeds | {' | '.join(heads)} | evaluations | positions with a full search |"]
    lines.append("|---|---|" + "---|" * (len(heads) + 2))
    for minutes in sorted({row["minutes"] for row in rows}):
        of_budget = [row for row in rows if row["minutes"] == minutes]
        cells = [cell([row["scores"][exam][i]["optimal"] for row in of_budget]) for i in range(len(simulations))]
        counts = [
            f"{statistics.median(row[key] for row in of_budget) / 1e6:.2f} M"
            for key in ("evaluations", "generated_positions")
        ]
        lines.append(f"| {minutes:g} | {len(of_budget)} | {' | '.join(cells + counts)} |")
    return "\n".join(lines) + "\n"


def cell(shares: list[dict[str, float]]) -> str:
    """Return the median share, the seeds' range, and half the mean 95 % interval of one seed's share."""
    values = [share["share"] for share in shares]
    half = statistics.mean((share["high"] - share["low"]) / 2 for share in shares)
    return f"**{statistics.median(values):.3f}** ({min(values):.3f} to {max(values):.3f}; each ± {half:.3f})"


if __name__ == "__main__":
    main()
