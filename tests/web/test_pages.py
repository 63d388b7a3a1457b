"""The dashboard as one file: everything is inside, and no text of the run can break out of its place."""

import json
import re
from pathlib import Path

import pytest

from plyzero.run.directory import Run
from plyzero.run.metrics import append_line
from plyzero.web.report import make_report
from plyzero.web.single_file import PAGE, inlined
from tests.helpers.cli import plyzero
from tests.helpers.runs import play_segment, small_run

BREAKS_OUT = "</script><script>document.title='broken'</script><!--<script>"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = small_run(tmp_path / "r")
    play_segment(run, full=20)
    model = "000001-000000010-0123abcd.onnx"
    line = {"step": 10, "games": 5, "policy_loss": 0.5, "warning": BREAKS_OUT, "model": model}
    append_line(run.metrics / "trainer-000001.jsonl", line)
    append_line(run.metrics / "rating.jsonl", {"model": model, "scores": {BREAKS_OUT: [1, 2, 3], "\u2028": [1, 0, 0]}})
    return run


def data_of(page: str) -> dict:
    (found,) = re.findall(r"<script>\nwindow\.PLYZERO_REPORT = (.*);\n</script>", page)
    return json.loads(found)


def test_a_report_holds_the_state_the_curves_and_the_games(run: Run):
    data = data_of(make_report(run))
    assert data["state"]["game"] == "tic-tac-toe v1"
    assert data["series"]["learning"]["step"] == [10]
    assert len(data["games"]["games"]) > 3
    assert data["made"] > 1e9


def test_a_report_loads_nothing(run: Run):
    page = make_report(run)
    outside = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:)', outside) == []
    assert "default-src 'none'" in outside
    assert page.count("<script") == page.count("</script>") == 4
    (imports,) = re.findall(r'<script type="importmap">\n?(.*?)\n?</script>', page, re.DOTALL)
    imported = re.findall(r'^import .* from "/static/(.*?)";$', (PAGE / "run.js").read_text(), re.MULTILINE)
    assert [*json.loads(imports)["imports"]] == imported
    assert imported


def test_text_of_a_run_stays_in_its_script(run: Run):
    page = make_report(run)
    assert BREAKS_OUT not in page
    assert "<!--" not in page
    assert BREAKS_OUT in data_of(page)["series"]["ratings"]
    assert page.count("</script>") == inlined("run.html", {}).count("</script>")


def test_the_command_writes_the_file_and_replaces_it(run: Run, tmp_path: Path):
    out = tmp_path / "run.html"
    for _ in range(2):
        done = plyzero("report", "--run", str(run.root), "-o", str(out))
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(rf"{out}: \d+ kB\n", done.stdout)
    assert data_of(out.read_text())["state"]["run"] == str(run.root)


@pytest.mark.parametrize(
    ("run_name", "out", "sentence"),
    [
        ("none", "x.html", "is not a run directory: it has no run.toml"),
        ("r", ".", "expected -o FILE in a directory that exists, such as report.html, got "),
        ("r", "r/run.toml/x.html", "expected -o FILE in a directory that exists"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(run: Run, tmp_path: Path, run_name: str, out: str, sentence: str):
    done = plyzero("report", "--run", str(tmp_path / run_name), "-o", str(tmp_path / out))
    assert (done.returncode, done.stdout, sentence in done.stderr) == (2, "", True), done.stderr
    assert done.stderr.count("\n") == 1
