"""Each contract finds the mistakes that it is for, and no other."""

import numpy as np
import pytest

from plyzero.files import list_files, list_names, read_file, write_file
from plyzero.rules.catalog import load_game
from plyzero.search.evaluators import Evaluation, Uniform
from plyzero.testing import EvaluatorContract, LookaheadContract, PlayerContract, VolumeContract
from plyzero.testing import volume_contract as of_volumes
from tests.helpers.toys import Hashed

TIC_TAC_TOE = load_game("tic-tac-toe").start


def broken(contract: object, *arguments: object) -> list[str]:
    """Return the names of the tests of a contract that fail."""
    found = []
    for name in sorted(each for each in dir(contract) if each.startswith("test_")):
        try:
            getattr(contract, name)(*arguments)
        except (Exception, pytest.fail.Exception):
            found.append(name.removeprefix("test_"))
    return found


class First:
    """A player without a fault, each of whose subclasses has one."""

    name = "first"

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choose_all(self, positions):
        for position in positions:
            if position.outcome() is not None:
                raise ValueError("it is over")
        return [self.choose(position) for position in positions]

    def choose(self, position):
        return position.legal_actions()[0]


def faulty(name: str, /, **parts) -> type[First]:
    return type(name, (First,), parts)


class ChangesPositions(First):
    def choose(self, position):
        action = super().choose(position)
        position.state["to_play"] = 1 - position.state["to_play"]
        return action


class OwnRandomNumbers(First):
    def choose(self, position):
        return int(np.random.default_rng().choice(position.legal_actions()))


Nameless = faulty("Nameless", name="")
Reversing = faulty("Reversing", choose_all=lambda self, positions: First.choose_all(self, positions)[::-1])
Illegal = faulty("Illegal", choose=lambda self, each: next(a for a in range(10) if a not in each.legal_actions()))
TooMany = faulty("TooMany", choose_all=lambda self, positions: positions and [*First.choose_all(self, positions), 0])
NeedsAPosition = faulty("NeedsAPosition", choose_all=lambda self, positions: First.choose_all(self, positions) or 1 / 0)
PlaysOn = faulty("PlaysOn", choose_all=lambda self, positions: [[*each.legal_actions(), 0][0] for each in positions])


SAME, PLAYS = "equal_random_numbers_make_equal_choices", "it_plays_a_game_move_by_move"
ORDER = "it_answers_many_positions_in_order_each_with_a_legal_move"


@pytest.mark.parametrize(
    ("player", "expected"),
    [
        (First, []),
        (Nameless, ["it_has_a_name"]),
        (Reversing, [ORDER]),
        (Illegal, [ORDER, PLAYS]),
        (TooMany, [ORDER, PLAYS]),
        (ChangesPositions, [SAME, ORDER, "it_changes_no_position", PLAYS]),
        (OwnRandomNumbers, [SAME]),
        (NeedsAPosition, ["it_chooses_nothing_for_no_position"]),
        (PlaysOn, ["it_refuses_a_finished_position"]),
    ],
)
def test_a_player_with_a_mistake_breaks_the_test_for_it(player: type[First], expected: list[str]):
    contract = PlayerContract()
    contract.game, contract.player = "tic-tac-toe", player
    assert broken(contract) == expected


def test_a_player_that_misses_wins_does_not_look_ahead():
    contract = LookaheadContract()
    contract.game, contract.player = "tic-tac-toe", First
    assert broken(contract) == ["it_wins_where_one_move_wins"]


KEPT_ARRAYS = np.zeros((99, 9), np.float32), np.zeros((99, 3), np.float32)


def of_kept_batch(batch):
    """Answer with arrays that are used again."""
    found = [array[: len(batch.observations)] for array in KEPT_ARRAYS]
    found[0][:], found[1][:] = Hashed(9)(batch)
    return Evaluation(*found)


def changing_its_input(batch):
    found = Hashed(9)(batch)
    batch.observations[0, 0, 0, 0] += 1
    return found


def as_a_whole(batch):
    logits, wdl = Hashed(9)(batch)
    return Evaluation(logits - logits.mean(), wdl)


def always(**rows):
    """Return an evaluator of whose rows these are all alike."""

    def answer(batch):
        found = {name: np.tile(row, (len(batch.observations), 1)) for name, row in rows.items()}
        return Uniform(9)(batch)._replace(**found)

    return answer


ROWS = "every_size_of_batch_has_a_row_of_possible_numbers_for_each_position"
ALONE = "a_row_depends_on_its_position_alone"
KEPT = "a_batch_is_neither_changed_nor_kept"


@pytest.mark.parametrize(
    ("evaluate", "expected"),
    [
        (Hashed(9), []),
        (of_kept_batch, [KEPT, ALONE]),
        (changing_its_input, [KEPT]),
        (as_a_whole, [ALONE]),
        (lambda batch: Evaluation(*(each[::-1] for each in Hashed(9)(batch))), [ALONE]),
        (always(logits=np.zeros(8, np.float32)), [ROWS]),
        (always(logits=np.zeros(9)), [ROWS]),
        (always(wdl=np.float32([0.5, 0.1, 0.1])), [ROWS]),
        (always(logits=np.full(9, np.inf, np.float32)), [ROWS]),
    ],
    ids=["right", "arrays used again", "changed input", "a mean over the batch", "reversed", "8", "f8", "0.7", "inf"],
)
def test_an_evaluator_with_a_mistake_breaks_the_test_for_it(evaluate, expected: list[str]):
    contract = EvaluatorContract()
    contract.game, contract.evaluator = "tic-tac-toe", lambda: evaluate
    assert broken(contract) == expected


def in_place(path, content, *, replace=False, durable=True):
    """Write as nobody should: the name appears before the content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb" if replace else "xb", buffering=0) as file:
        for at in range(0, len(content), 1000):
            file.write(content[at : at + 1000])


def over_others(path, content, *, replace=False, durable=True):
    write_file(path, content, replace=True, durable=durable)


TORN = "a_reader_sees_the_old_or_the_new_content_while_a_file_is_replaced"
TAKEN = ("creating_what_exists_is_refused_and_changes_nothing", "of_eight_creators_at_once_one_succeeds")
NOTHING = "a_list_of_what_is_not_there_is_empty"
HALF = "a_list_has_all_that_was_written_before_and_nothing_below"


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("write_file", write_file, ()),
        ("write_file", in_place, (TORN,)),
        ("write_file", over_others, TAKEN),
        ("list_files", lambda directory: dict([*list_files(directory).items()][::2]), (HALF,)),
        ("list_names", lambda directory: list_names(directory) or ["something"], (NOTHING,)),
        ("read_file", lambda path, *, max_bytes: read_file(path, max_bytes=1 << 30), ("reading_is_bounded",)),
    ],
    ids=["right", "in place", "over others", "half a list", "a list of nothing", "unbounded"],
)
def test_a_volume_with_a_mistake_breaks_the_test_for_it(
    tmp_path, monkeypatch: pytest.MonkeyPatch, name: str, wrong, expected: tuple[str, ...]
):
    monkeypatch.setattr(of_volumes, name, wrong)
    contract = VolumeContract()
    places = (tmp_path / str(number) for number in range(100))
    contract.volume = lambda directory: next(places)
    assert broken(contract, tmp_path) == [*expected]
