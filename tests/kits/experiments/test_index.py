"""The page: it links all that is there, names what is missing, and loads nothing from elsewhere."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from plyzero.kits.experiments.tasks.index import index

FILES = (
    *("run-00/train/agent.onnx", "run-00/train/card.json", "run-00/train/train.csv", "run-00/train-plots/train.png"),
    *("run-00/evaluate/eval.csv", "run-00/eval-plots/eval.png"),
    *("run-00/examples/games.jsonl", "run-00/examples/game-01.gif", "run-00/examples/game-01.txt"),
    *("average/train.csv", "average/eval.csv", "average/missing.json", "average-plots/train.png"),
    *("average-plots/eval.png", "ladder/ratings.png", "ladder/ratings.csv", "ladder/ladder.json"),
    *("effects/effects.csv", "effects/effects.md", "logs/run-00/train.log", "logs/average.log"),
)


class Page:
    """The tags of a page, its links and pictures, and its text."""

    def __init__(self, path: Path) -> None:
        source = path.read_text()
        self.tags = {*re.findall(r"<(\w+)", source)}
        self.links = [unquote(unescape(each)) for each in re.findall(r'<a [^>]*href="([^"]*)"', source)]
        self.pictures = [unquote(unescape(each)) for each in re.findall(r'<img [^>]*src="([^"]*)"', source)]
        self.text = unescape(re.sub(r"<[^>]*>", "", source))


def plant(*names: str):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text('{"group": "c=1 & 2", "step": 500, "score": 0.925}' if "card" in name else "x")


def make(runs: str = "run-00", *, title: str = "title", first: int = 0) -> Page:
    index(Path(), Path("index.html"), report=lambda text: None, runs=runs.split(), title=title, first=first)
    return Page(Path("index.html"))


def test_all_results_are_linked_and_pictures_are_shown():
    plant(*FILES)
    page = make()
    assert sorted(page.links) == sorted(FILES)
    assert sorted(page.pictures) == sorted(name for name in FILES if name.endswith((".png", ".gif")))
    assert "missing:" not in page.text
    assert "run-00: c=1 & 2, step 500, score 0.925" in page.text


def test_the_page_is_self_contained():
    plant(*FILES)
    page = make()
    text = Path("index.html").read_text()
    assert "http" not in text
    assert "//" not in text
    assert not {"script", "link", "iframe"} & page.tags
    assert '<meta charset="utf-8">' in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_names_are_escaped_and_links_lead_to_files_with_any_name():
    plant("run-00/examples/game-<b>&'\" 1%.txt")
    Path("experiment.json").write_text(json.dumps({"parameters": {"<i>": "<u>", "values": ["a=1 b=2", "c=3"]}}))
    page = make(title="<script>alert(1)</script>")
    assert {"script", "b", "i", "u"}.isdisjoint(page.tags)
    assert "<script>alert(1)</script>" in page.text
    assert "a=1 b=2 c=3" in page.text
    assert page.links == ["run-00/examples/game-<b>&'\" 1%.txt"]


def test_what_is_missing_is_named():
    plant("run-00/train/train.csv", "run-00/evaluate/eval.csv")
    page = make("run-00 run-01")
    first, second = page.text.split("run-00")[-1].split("run-01")
    assert "missing: plot of the training" in first
    assert "missing: results of matches" not in first
    assert "missing: results of matches" in second
    assert "missing: averages over runs" in page.text
    assert all(Path(link).exists() for link in page.links)


def test_runs_that_were_not_asked_for_are_not_missing():
    plant("run-00/train/train.csv")
    assert "run-01" in make("run-00 run-01").text
    assert "run-01" not in make("run-00 run-01", first=1).text


def test_only_what_the_experiment_has_tasks_for_is_missing():
    tasks = [{"name": "run-00/train", "out": "run-00/train"}, {"name": "ladder", "out": "ladder"}]
    Path("experiment.json").write_text(json.dumps({"tasks": tasks}))
    page = make()
    named = [line.removeprefix("missing: ") for line in page.text.splitlines() if line.startswith("missing: ")]
    assert named == ["ladder", "bot and its card", "training curves"]


def test_a_damaged_manifest_or_card_does_not_keep_the_page_from_being_made():
    plant(*FILES)
    Path("experiment.json").write_text("{")
    Path("run-00/train/card.json").write_text("[]")
    assert "run-00" in make().text


def test_the_page_can_lie_elsewhere():
    plant(*FILES)
    index(Path(), Path("pages/all.html"), report=lambda text: None, runs=["run-00"], title="t")
    page = Page(Path("pages/all.html"))
    assert len(page.links) == len(FILES)
    assert all((Path("pages") / link).exists() for link in page.links)
