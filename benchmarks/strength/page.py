"""Print what learn.py and score.py --json have written as tables: medians, and how far seeds and chance reach.

python -m benchmarks.strength.page benchmarks/results/learning.jsonl \\
    --baselines benchmarks/results/baselines.jsonl > benchmarks/results/learning.md
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.strength.score import MEASURED

INTRODUCTION = """\
Share of positions in which a best move is played: **median of the seeds** (the seeds' lowest to highest; ± half the
95 % interval of a single one). Values: the share of positions in which the likeliest of win, draw and loss is the true
one; Brier: the squared error of the three probabilities, 0 is perfect. Minutes are wall clock from the start of
`plyzero train`, imports and compilation included; evaluations are positions that the network was asked about in
self-play. {machines}.
"""


def main() -> None:
    """Print a table for every game, exam and choice of options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="FILE")
    parser.add_argument("--baselines", type=Path, metavar="FILE", help="of players that do not learn")
    given = parser.parse_args()

    results, baselines = read(given.results), read(given.baselines) if given.baselines else []
    tables: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for exam in result["scores"]:
            tables[result["game"], exam, " ".join(result["options"])].append(result)
    print("# What is learned in how many minutes\n")
    print(
        INTRODUCTION.format(machines=" and ".join(sorted({f"{each['hardware']}, {each['date']}" for each in results})))
    )
    for (game, exam, options), rows in tables.items():
        print(f"## {game}, {exam}{f', {options}' if options else ''}\n")
        print(by_minutes(exam, rows))
        longest = max(row["minutes"] for row in rows)
        reports = [row["scores"][exam] for row in rows if row["minutes"] == longest]
        beside = [each for each in baselines if (each["game"], each["exam"]) == (game, exam)]
        print(f"By ply, after {longest:g} minutes, and of players that learn nothing:\n")
        print(by_ply(list(zip(*reports, strict=True)), beside))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def by_minutes(exam: str, rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a row per budget: shares of best moves without and with search, and the effort."""
    titles = [title(report) for report in rows[0]["scores"][exam]]
    lines = table_head("minutes", "seeds", *titles, "evaluations", "positions with a full search")
    for minutes in sorted({row["minutes"] for row in rows}):
        of_budget = [row for row in rows if row["minutes"] == minutes]
        cells = [cell([row["scores"][exam][i]["best moves"]["all"] for row in of_budget]) for i in range(len(titles))]
        counts = [
            f"{statistics.median(row[key] for row in of_budget) / 1e6:.2f} M"
            for key in ("evaluations", "generated_positions")
        ]
        lines.append(f"| {minutes:g} | {len(of_budget)} | {' | '.join(cells + counts)} |")
    return "\n".join([*lines, ""])


def by_ply(reports: list[tuple[dict[str, Any], ...]], baselines: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a column per stratum. reports: of each number of simulations, one per seed."""
    strata = list(reports[0][0]["best moves"])
    lines = table_head("", *strata)
    for same in [*reports, *((each,) for each in baselines)]:
        for measured in (each for each in MEASURED if each in same[0]):
            cells = [cell([report[measured][stratum] for report in same]) for stratum in strata]
            lines.append(f"| {title(same[0])}, {measured} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def table_head(*names: str) -> list[str]:
    """Return the first two lines of a Markdown table."""
    return ["".join(f"| {name} " if name else "| " for name in names) + "|", "".join("|---" for _ in names) + "|"]


def title(report: dict[str, Any]) -> str:
    if "simulations" not in report:
        return str(report["player"])
    return f"{report['simulations']} simulations" if report["simulations"] else "raw network"


def cell(shares: list[dict[str, float]]) -> str:
    """Return the median share, the seeds' range, and half the mean 95 % interval of one seed's share."""
    values = [share["mean"] for share in shares]
    half = statistics.mean((share["high"] - share["low"]) / 2 for share in shares)
    spread = f"{min(values):.3f} to {max(values):.3f}; " if len(values) > 1 else ""
    return f"**{statistics.median(values):.3f}** ({spread}± {half:.3f})"


if __name__ == "__main__":
    main()
