"""The id of a run: what carries it, what is refused because of it, and how an older run gets one."""

import shutil
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from plyzero.errors import ModelRefusedError, UserError
from plyzero.network.model_loader import ModelWatch, is_of_network, load_model, load_network
from plyzero.ops.verify import find_faults
from plyzero.rules.catalog import load_game
from plyzero.run import directory as directory_module
from plyzero.run.adoption import seal_taken, take_journal
from plyzero.run.directory import Run, create_run, open_or_create_run, open_run, read_run
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.models import list_models, publish_model
from plyzero.run.replay import read_games
from plyzero.run.segments import SegmentError, list_segments, read_segment
from plyzero.trainer.export import untrained
from plyzero.trainer.loop import Trainer
from plyzero.trainer.replay_reader import TRIES, ReplayReader
from tests.helpers.journals import leave
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games


@pytest.fixture
def other(tmp_path: Path) -> Run:
    """Another run of the same game with the same settings and the same seed."""
    return small_run(tmp_path / "other")


def add_segment(run: Run) -> Path:
    return seal(run, some_games(run.game, 1))


def add_journal(run: Run) -> str:
    return leave(run.journals, run, some_games(run.game, 1)).name


def faults(run: Run) -> list[str]:
    return [fault for _, fault in find_faults(run) if fault]


def without_id(run: Run) -> Run:
    """The run as a version made it that had no ids."""
    lines = (run.root / "run.toml").read_text().splitlines(keepends=True)
    (run.root / "run.toml").write_text("".join(line for line in lines if not line.startswith("id = ")))
    return open_run(run.root)


def refusal(run: Run, other: Run) -> str:
    return f"it is of the run '{other.id.text}', and this is the run {run.id.text}"


def test_two_runs_have_different_ids_and_a_copy_has_that_of_the_original(run: Run, other: Run, tmp_path: Path):
    assert run.id.text != other.id.text
    assert open_run(run.root).id == read_run(run.root).id == run.id
    assert not run.id.older_without
    add_model(run), add_segment(run), add_journal(run)
    shutil.copytree(run.root, tmp_path / "copy")
    copy = open_or_create_run(tmp_path / "copy", None)
    assert copy.id == run.id
    assert load_model(copy.models, list_models(copy.models)[0], copy.game, run_id=copy.id).step == 12
    assert len(read_games(copy.root).games) == 2
    assert faults(copy) == []


def test_a_model_of_another_run_is_refused_wherever_models_are_loaded(run: Run, other: Run, caplog):
    name = str(add_model(run))
    foreign = publish_model(run.models, untrained(other), fence=2, step=2)
    with pytest.raises(ModelRefusedError, match=f"^{foreign} is refused: {refusal(run, other)}$"):
        load_model(run.models, foreign, run.game, run_id=run.id)
    assert load_network(run.root).label == name
    with ModelWatch(run.models, run.game, poll_seconds=0, threads=1, run_id=run.id) as watch:
        assert watch.newer().label == name
        assert watch.newer() is None
    assert caplog.text.count(f"keeping the old model: {foreign} is refused: {refusal(run, other)}") == 1
    with pytest.raises(UserError, match=rf"can be used: {foreign} is refused: {refusal(run, other)}$"):
        load_network(run.root, model="2")
    add_segment(run)  # whose positions models are tried with
    assert faults(run) == [f"{foreign} is refused: {refusal(run, other)}"]


def test_a_segment_of_another_run_is_refused_and_not_taken_in(run: Run, other: Run, caplog):
    path = add_segment(other)
    moved = run.segments / path.name
    shutil.copy(path, moved)
    sentence = f"{path.name} is refused: {refusal(run, other)}"
    with pytest.raises(SegmentError, match=f"^{sentence}$"):
        read_segment(moved, run.game, run_id=run.id)
    with pytest.raises(UserError, match=sentence):
        read_games(moved)
    assert faults(run)
    reader = ReplayReader(run)
    assert [each for _ in range(TRIES) for each in reader.read_new()] == []
    assert caplog.text.count(f"moved to quarantine: {sentence}") == 1
    assert not list(list_segments(run.segments))


def test_a_journal_of_another_run_is_refused_and_not_sealed(run: Run, other: Run, caplog):
    name = add_journal(other)
    shutil.copy(other.journals / name, run.journals / name)
    with pytest.raises(ValueError, match=f"^{name} is refused: {refusal(run, other)}$"):
        read_journal(run.journals / name, run.game, run_id=run.id)
    taken = take_journal(run, list_journals(run.journals)[0])
    assert seal_taken(run, taken) == 0
    assert refusal(run, other) in caplog.text
    assert (run.quarantine / name).exists()
    assert not list(list_segments(run.segments))
    own = list_journals(other.journals)[0]
    assert seal_taken(other, take_journal(other, own)) == 2
    assert read_games(other.root).games["id"].size == 2


def test_a_state_of_another_run_is_refused(run: Run, other: Run):
    with closing(Trainer(other, device="cpu")) as trainer:
        trainer.publisher.save()
    for state in other.trainer.glob("state-*.pt"):
        shutil.copy(state, run.trainer)
    with pytest.raises(UserError, match=rf"newest state in .* is refused: {refusal(run, other)}; move it away$"):
        Trainer(run, device="cpu")
    with closing(Trainer(other, device="cpu")) as again:
        assert again.learner.step == 0


def test_a_new_run_takes_no_file_without_an_id_and_an_older_run_its_own(run: Run, other: Run):
    nameless = without_id(other)
    assert nameless.id is None
    model, path, name = str(add_model(nameless)), add_segment(nameless), add_journal(nameless)
    shutil.copy(nameless.models / model, run.models)
    shutil.copy(path, run.segments)
    shutil.copy(nameless.journals / name, run.journals)
    of_none = f"is refused: it is of no run, and this is the run {run.id.text}"
    with pytest.raises(UserError, match=of_none):
        load_network(run.root)
    with pytest.raises(SegmentError, match=of_none):
        read_segment(run.segments / path.name, run.game, run_id=run.id)
    with pytest.raises(ValueError, match=of_none):
        read_journal(run.journals / name, run.game, run_id=run.id)
    opened = open_or_create_run(nameless.root, None)
    assert opened.id.older_without
    own = list_models(opened.models)[0]
    assert load_model(opened.models, own, opened.game, run_id=opened.id).label == model
    assert len(read_segment(path, opened.game, run_id=opened.id).games) == 2
    assert len(read_journal(opened.journals / name, opened.game, run_id=opened.id)) == 1
    foreign = publish_model(opened.models, untrained(run), fence=2, step=2)
    with pytest.raises(ModelRefusedError, match=refusal(opened, run)):
        load_model(opened.models, foreign, opened.game, run_id=opened.id)
    assert not is_of_network(opened)


def test_processes_that_open_an_older_run_at_once_agree_on_its_id(run: Run, monkeypatch: pytest.MonkeyPatch):
    text = "\ufeff" + without_id(run).root.joinpath("run.toml").read_text() + "# my own remark\n"
    (run.root / "run.toml").write_text(text)
    together, claim = threading.Barrier(4), directory_module._claim

    def claim_together(path: Path) -> str:
        together.wait(30)  # all have read a run.toml without an id
        return claim(path)

    monkeypatch.setattr(directory_module, "_claim", claim_together)
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(lambda _: open_or_create_run(run.root, None), range(4)))
    assert len({each.id for each in opened}) == 1
    written = (run.root / "run.toml").read_text()
    assert written.endswith(text.removeprefix("\ufeff"))  # what a person has written stays
    assert tomllib.loads(written)["id"] == opened[0].id.text == (run.root / "run-id").read_text()


def test_whoever_was_killed_between_the_claim_and_the_change_is_followed(run: Run):
    without_id(run)
    (run.root / "run-id").write_text("0123456789abcdef")
    assert open_or_create_run(run.root, None).id.text == "0123456789abcdef"


@pytest.mark.parametrize("line", ['id = "x"', "id = 7", 'id = "0123456789ABCDEF"'])
def test_an_id_of_another_form_is_refused_in_one_sentence(run: Run, line: str):
    without_id(run)
    path = run.root / "run.toml"
    path.write_text(f"{line}\n{path.read_text()}")
    with pytest.raises(UserError, match=r"run.toml: expected an id of 16 hex digits .*, got "):
        read_run(run.root)


def test_a_run_is_of_its_network_only_while_its_settings_name_it(tmp_path: Path):
    run = create_run(tmp_path / "r", load_game("tic-tac-toe"), options=["network.blocks=1", "network.channels=8"])
    assert not is_of_network(run)  # there is no model
    add_model(run)
    assert is_of_network(run)
    assert not is_of_network(open_run(run.root, options=["network.channels=12"]))
    (run.models / str(list_models(run.models)[0])).write_bytes(b"damaged")
    assert not is_of_network(run)
