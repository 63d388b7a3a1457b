"""review: what the turns of recorded games have lost, as text, JSON or a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from plyzero.commands import common
from plyzero.commands.play import Model, Net, RunToPlay, Unmeasured, check_source
from plyzero.errors import UserError, shown

if TYPE_CHECKING:
    from plyzero.kits.engines.game_record import ReadGame
    from plyzero.kits.review.tables import ReviewedGame
    from plyzero.play.judge import Judge
    from plyzero.rules.catalog import GameSpec


@common.in_panel("Play")
def review(
    game: common.GameArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Games of match --save or replay export, a saved game, SGF or PGN; - = standard input.",
        ),
    ],
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    simulations: Annotated[
        int, typer.Option(min=16, help="Simulations for each turn; more where a loss is not clear.")
    ] = 256,
    unmeasured: Unmeasured = False,
    chosen: Annotated[
        int | None, typer.Option("--game", min=1, metavar="N", help="Only the game with this number.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each game.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write one game as a page, FILE.html.")
    ] = None,
) -> None:
    """Review recorded games: what each turn has lost, how sure that is, and what the rolls gave.

    The judge is the network of --run or --net if it is measured to beat mcts:100, else the bundled bot, else pure MCTS.
    """
    from plyzero.kits.review.tables import review_text, reviews_text
    from plyzero.play.judge import find_judge

    if output is not None and (output.suffix != ".html" or output.is_dir() or not output.parent.is_dir()):
        raise UserError(f"expected -o FILE.html in a directory that exists, got {shown(str(output))}")
    check_source(run, net, model)
    path = output and output.absolute()  # rules may leave the current directory
    spec = common.find_game(game)
    with common.playing(spec) as out, common.show_progress("loading the judge") as report:
        found = [*_read(spec, file, chosen)]
        if path is not None and len(found) > 1:
            raise UserError(f"{file} has {len(found)} games, and a page shows one: choose it by --game N")
        judge = find_judge(spec, run=run, net=net, model=model, unmeasured=unmeasured, simulations=simulations)
        games: list[ReviewedGame] = []
        for each in _reviewed(found, judge, run, simulations, report):
            if isinstance(each, Fault):
                print(f"plyzero: game {each.number} of {file}: {each.reason}", file=sys.stderr)
            else:
                games.append(each)
            if as_json:
                print(json.dumps(each.describe(judge.sentence)), file=out, flush=True)
        report("")
        if games and path is not None:
            _write_page(path, games[0], spec, judge)
        if games and not as_json:
            text = review_text(games[0]) if len(found) == 1 else reviews_text(games)
            print(f"{text}\n\n{judge.sentence}", file=out)
    if len(games) < len(found):
        raise UserError(f"{len(found) - len(games)} of {len(found)} games could not be reviewed")


UNNAMED: Final = "the first player", "the second player"
"""The players of a file that does not name them."""


class Fault(NamedTuple):
    """Why a game of a file could not be reviewed, as a sentence."""

    number: int
    reason: str

    def describe(self, judge: str) -> dict[str, object]:
        """Return it as JSON. `judge` is not needed."""
        return {"game": self.number, "error": self.reason}


def _reviewed(
    games: Sequence[ReadGame], judge: Judge, run: Path | None, simulations: int, report: Callable[[str], None]
) -> Iterator[ReviewedGame | Fault]:
    """Yield the review of each game; the scale of the game is measured before the first one if it is not known."""
    from plyzero.kits.engines.game_record import GameRecord
    from plyzero.kits.review.measuring import scale_of
    from plyzero.kits.review.reviewing import review as review_game
    from plyzero.kits.review.tables import ReviewedGame
    from plyzero.kits.review.values import Valuer

    def measuring(made: int, number: int) -> None:
        report(f"measuring what moves lose in this game: {made} of {number} games")

    valuer = Valuer(judge.bot)
    scale = None
    for done, each in enumerate(games):
        record = each.record
        if not isinstance(record, GameRecord):
            yield Fault(each.number, record)
        elif record.winner is None:
            moves = len(record.moves)
            yield Fault(each.number, f"the game is not over after its {moves} moves; expected one that has ended")
        else:
            scale = scale or scale_of(judge, valuer, run, measuring)
            report(f"reviewing game {each.number}, {done} of {len(games)} done")
            players = each.players or UNNAMED
            yield ReviewedGame(each.number, players, record, review_game(valuer, scale, record, simulations))


def _read(spec: GameSpec, file: str, chosen: int | None) -> Iterator[ReadGame]:
    """Yield the games of a file, or the chosen one. Raises UserError if there is none."""
    from plyzero.kits.engines.game_files import open_lines
    from plyzero.kits.engines.game_record import read_games

    with open_lines(file) as lines:
        count = 0
        for count, each in enumerate(read_games(lines, spec), 1):
            if chosen in (None, count):
                yield each
    if not count:
        raise UserError(f"{file} contains no game; expected JSON lines of plyzero match --save, SGF or PGN")
    if chosen is not None and chosen > count:
        raise UserError(f"expected --game from 1 to {count}, the number of games in {file}, got {chosen}")


def _write_page(path: Path, game: ReviewedGame, spec: GameSpec, judge: Judge) -> None:
    from plyzero.files import write_file
    from plyzero.kits.engines.game_record import colours_of, frames_of, result_of
    from plyzero.kits.web.pages import make_page

    frames, result = frames_of(game.record), result_of(game.record, colours_of(game.record))
    page = make_page(frames, spec.name, result, review=game.describe(judge.sentence))
    write_file(path, page.encode(), replace=True)
