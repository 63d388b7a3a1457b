"""Settings of the search on the command line: `-o` of analyze and match."""

import json

import pytest

from plyzero.run.models import publish_model
from tests.helpers.cli import plyzero, shown
from tests.helpers.runs import small_run
from trainer.export import untrained


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe")
    publish_model(run.models, untrained(run), fence=1, step=1)
    return str(run.root)


@pytest.mark.parametrize("considered", [1, 4])
def test_analyze_searches_with_the_settings_it_is_given(root: str, considered: int):
    option = f"search.max_considered_actions={considered}"
    command = ("analyze", "tic-tac-toe", "--run", root, "--simulations", "16", "-o", option)
    answer = json.loads(shown(*command, text='{"id": 1, "moves": []}\n'))
    assert sum(move["visits"] > 0 for move in answer["moveInfos"]) == considered


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("search.cpuct=2", "search settings: no setting is called search.cpuct; the nearest is search.c_puct"),
        ("search.c_puct=0", "setting search.c_puct: Input should be greater than 0, got '0'"),
        (
            "selfplay.simulations=9",
            "-o: expected a setting of the search, such as search.c_puct=2, got one of self",
        ),
        ("c_puct=2", "expected -o SECTION.KEY=VALUE"),
    ],
)
def test_analyze_and_match_refuse_other_settings_in_one_sentence(root: str, option: str, sentence: str):
    for command in (("analyze", "tic-tac-toe", "--run", root), ("match", root, "random", "--game", "tic-tac-toe")):
        done = plyzero(*command, "-o", option)
        assert done.returncode == 2
        assert sentence in " ".join(done.stderr.split())
