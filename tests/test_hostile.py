"""Untrusted files on the volume: those that once broke a reader, and a short run of the fuzzer.

tests/hostile holds the files; tests/helpers/fuzz.py makes more. The tests of single readers are in test_hostile_*.py.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import ModelRefusedError, UserError
from plyzero.network.onnx_network import Network
from plyzero.rules.catalog import load_game
from plyzero.run.directory import open_run
from plyzero.run.journals import read_journal
from plyzero.run.segments import SegmentError, read_segment
from tests.helpers.fuzz import READERS, TRAINER, WORKER, look
from tests.helpers.hostile import at_most, put
from tests.helpers.runs import small_run
from tests.helpers.segments import CONNECT_FOUR, RELAY

HOSTILE = Path(__file__).parent / "hostile"

FUZZED = {"segments": 400, "journals": 400, "models": 200, "settings": 300, "heartbeats": 200}


@pytest.mark.parametrize("reader", FUZZED)
def test_no_file_made_wrong_on_purpose_breaks_its_reader(tmp_path: Path, reader: str):
    maker, verdicts = READERS[reader](np.random.default_rng(3), tmp_path), Counter()
    (tmp_path / "now").mkdir()
    for _ in range(FUZZED[reader]):
        case = maker.case()
        path = put(tmp_path / "now", case.name, case.content)
        verdicts["accepted" if case.judge(path) else "refused"] += 1
        path.unlink()
    assert verdicts["refused"] > FUZZED[reader] / 4
    assert verdicts["accepted"] > 0


def replayed(reader: str, path: Path, directory: Path) -> None:
    """Read a file of the corpus, which keeps its promise if nothing else is raised than what is caught here."""
    content, name = path.read_bytes(), path.name.rpartition("--")[2]
    copy = put(directory, name, content)
    with at_most(megabytes=512):
        match reader:
            case "segments" | "journals":
                read, error = (read_segment, SegmentError) if reader == "segments" else (read_journal, Exception)
                for game in (CONNECT_FOUR, RELAY):
                    with suppress(error):
                        read(copy, game)
            case "models":
                with suppress(ModelRefusedError):
                    Network(content, load_game("tic-tac-toe"), label="x")
            case "settings":
                with suppress(UserError):
                    open_run(directory)
            case "heartbeats":
                run = small_run(directory / "r")
                put(run.workers, "trainer.json", TRAINER)
                put(run.workers, "w9.00000009.json", WORKER)
                put(run.models, "000001-000000001-2d711642.onnx", b"x")
                look(run, copy)
            case _:
                raise AssertionError(f"no reader is called {reader}")


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in sorted(HOSTILE.glob("*/*"))]
)
def test_no_file_of_the_corpus_breaks_its_reader(tmp_path: Path, path: Path):
    replayed(path.parent.name, path, tmp_path)
