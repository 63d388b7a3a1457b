"""Plots of tables: what is read, what is drawn, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.arena.plots import plot_curves, plot_intervals, plot_ratings, read_table, write_picture
from tests.helpers.cli import refused, shown

Image = pytest.importorskip("PIL.Image")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb

ROWS = [
    {"step": 10, "score": 0.5, "score_low": 0.25, "score_high": 0.75, "model": "a"},
    {"step": 30, "score": None, "score_low": None, "score_high": None, "model": "b"},
    {"step": 20, "score": 1.0, "score_low": 0.75, "score_high": 1.0, "model": "c"},
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    header = ",".join(ROWS[0])
    cells = [",".join("" if value is None else str(value) for value in row.values()) for row in ROWS]
    (tmp_path / "a.csv").write_text("\n".join([header, *cells]) + "\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in ROWS))
    (tmp_path / "one.csv").write_text("step,score\n5,0.25\n")
    (tmp_path / "ratings.csv").write_text("player,elo,low,high\nstrong,120,-95,150\nweak,-80,-90,-75\n")
    return tmp_path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_curve_has_the_numbers_of_the_file_in_the_order_of_x_and_its_band(files: Path, name: str):
    (chart,) = plot_curves({"a": read_table(files / name)}, "step", ["score"]).axes
    (line,) = chart.lines
    assert line.get_xydata().tolist() == [[10, 0.5], [20, 1.0]]
    (band,) = chart.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert {(10, 0.25), (10, 0.75), (20, 0.75), (20, 1.0)} <= corners
    assert (chart.get_xlabel(), chart.get_ylabel()) == ("step", "score")


def test_several_files_are_several_curves_also_where_one_has_a_single_row(files: Path):
    tables = {name: read_table(files / name) for name in ("a.csv", "one.csv")}
    (chart,) = plot_curves(tables, "step", ["score"]).axes
    assert [line.get_label() for line in chart.lines] == ["a.csv", "one.csv"]
    assert chart.lines[1].get_marker() == "o"  # a single point has no line
    assert chart.get_legend()


def test_ratings_go_from_the_strongest_to_the_weakest_with_their_intervals(files: Path):
    table = read_table(files / "ratings.csv")
    figure = plot_ratings([dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)])
    (chart,) = figure.axes
    assert [label.get_text() for label in chart.get_yticklabels()] == ["strong", "weak"]
    segments = chart.containers[0][2][0].get_segments()
    assert np.array(segments)[:, :, 0].tolist() == [[-95, 150], [-90, -75]]


def test_ratings_say_their_unit_and_their_anchor(files: Path):
    rows = [{"player": "a", "elo": 0.0, "low": 0.0, "high": 0.0}]
    for anchor, label in (("", "Elo with 95 % interval"), ("a", "Elo with 95 % interval; a = 0")):
        (chart,) = plot_ratings(rows, anchor=anchor, title="Ladder").axes
        assert (chart.get_xlabel(), chart.get_title()) == (label, "Ladder")


def test_intervals_of_several_groups_stand_side_by_side_at_their_names():
    groups = {"a": [("one", 0.5, 0.25, 0.625), ("two", 0.1, None, None)], "b": [("two", 0.9, 0.8, 1.0)]}
    figure = plot_intervals(groups, "score", title="both")
    (chart,) = figure.axes
    assert [label.get_text() for label in chart.get_yticklabels()] == ["one", "two"]
    assert chart.get_yticks().tolist() == [0, 1]
    assert chart.get_ylim() == (1.5, -0.5)  # the first one at the top
    points = [container[0].get_xydata().round(6).tolist() for container in chart.containers]
    assert points == [[[0.5, -0.175], [0.1, 0.825]], [[0.9, 1.175]]]
    one, two = (container[2][0].get_segments() for container in chart.containers)
    assert np.round(one[0], 6).tolist() == [[0.25, -0.175], [0.625, -0.175]]
    assert np.round(two, 6).tolist() == [[[0.8, 1.175], [1.0, 1.175]]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert (chart.get_xlabel(), chart.get_title()) == ("score", "both")
    assert figure.get_size_inches().tolist() == pytest.approx([8, 1.2 + 0.35 * 4])
    assert not plot_intervals({"": groups["a"]}, "score", title="").legends


def test_columns_are_charts_one_below_the_other_over_one_axis():
    table = {"step": [3, "2", True, 1, "nan"], "a": [30, "20", 9, None, 5], "b": [3.0, 2.0, 9.0, 1.0, 5.0]}
    table |= {"a_low": [29, 19, None, None, None], "a_high": [31, 21, None, None, None]}
    upper, lower = plot_curves({"t": table}, "step", ["a", "b"], title="both").axes
    assert upper.lines[0].get_xydata().tolist() == [[2, 20], [3, 30]]  # what is no number is left out
    assert lower.lines[0].get_xydata().tolist() == [[1, 1], [2, 2], [3, 3]]
    assert (upper.get_title(), upper.get_xlabel(), lower.get_title(), lower.get_xlabel()) == ("both", "", "", "step")
    assert len(upper.collections) == 1
    assert not lower.collections
    assert upper.get_legend() is None  # of a single table


def test_a_band_has_the_colour_of_its_curve_and_both_ends_at_each_point():
    table = {"step": [1, 2], "a": [3, 4], "a_low": [2, 3], "a_high": [4, 6]}
    one_end = {name: values for name, values in table.items() if name != "a_high"}
    tables = {"one end": one_end, "whole": table, "again": table, "apart": table | {"a_high": [4, None]}}
    (chart,) = plot_curves(tables, "step", ["a"]).axes
    colours = [band.get_facecolor()[0].tolist()[:3] for band in chart.collections]
    assert colours == [pytest.approx(to_rgb(line.get_color())) for line in chart.lines[1:3]]


def test_cells_without_a_column_and_numbers_beyond_all_bounds_are_left_out(tmp_path: Path):
    (tmp_path / "a.csv").write_text("step,a\n1,2\n3,4,5\n")
    assert read_table(tmp_path / "a.csv") == {"step": ["1", "3"], "a": ["2", "4"]}
    (tmp_path / "a.jsonl").write_text('{"step": 1, "a": 2}\n{"step": 3, "a": 1' + "0" * 400 + "}\n")
    (chart,) = plot_curves({"a": read_table(tmp_path / "a.jsonl")}, "step", ["a"]).axes
    assert chart.lines[0].get_xydata().tolist() == [[1, 2]]


@pytest.mark.parametrize(("rows", "marker"), [(30, "o"), (31, "")])
def test_few_points_are_marked(rows: int, marker: str):
    table = {"step": [*range(rows)], "a": [*range(rows)]}
    (chart,) = plot_curves({"t": table}, "step", ["a"]).axes
    assert chart.lines[0].get_marker() in (marker, marker or "None")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_is_of_the_kind_that_its_name_says(files: Path, kind: str):
    path = files / f"p.{kind}"
    write_picture(plot_curves({"a": read_table(files / "a.csv")}, "step", ["score"]), path)
    content = path.read_bytes()
    assert {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}[kind] in content
    if kind == "png":
        assert Image.open(path).size == (800, 320)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a.csv", "-o", "p.txt", "-y", "score"], "expected a file that ends in .png, .svg or .pdf, got p.txt"),
        (["a.csv", "-o", "p.png"], "expected -y COLUMN, one of model, score, score_high, score_low, step"),
        (["a.csv", "-o", "p.png", "-y", "loss"], "no file has numbers in a column 'loss'; there are score, "),
        (["a.csv", "-o", "p.png", "-y", "model"], "no file has numbers in a column 'model'"),
        (["a.csv", "-o", "p.png", "-x", "games", "-y", "score"], "a.csv has no column 'games'; it has step, score, "),
        (["none.csv", "-o", "p.png", "-y", "score"], "cannot read none.csv: No such file or directory"),
        (["empty.csv", "-o", "p.png", "-y", "score"], "empty.csv has no rows; expected a CSV file with a header"),
        (["bad.jsonl", "-o", "p.png", "-y", "score"], "bad.jsonl, line 2: expected a JSON object, "),
        (["deep.jsonl", "-o", "p.png", "-y", "score"], "deep.jsonl, line 1: expected a JSON object, "),
        (["binary.csv", "-o", "p.png", "-y", "score"], "binary.csv is not text"),
    ],
)
def test_what_cannot_be_plotted_is_one_sentence(files: Path, monkeypatch, arguments: list[str], sentence: str):
    monkeypatch.chdir(files)
    Path("empty.csv").touch()
    Path("bad.jsonl").write_text('{"step": 1}\n[2]\n')
    Path("deep.jsonl").write_text('{"a": ' + "[" * 200_000)
    Path("binary.csv").write_bytes(b"\xff\xfe\x00")
    assert sentence in refused("plot", *arguments)
    assert not Path("p.png").exists()


def test_plot_finds_the_horizontal_axis_and_knows_ratings(files: Path):
    shown("plot", f"{files}/a.jsonl", f"{files}/one.csv", "-y", "score", "-o", f"{files}/c.svg")
    shown("plot", f"{files}/ratings.csv", "-o", f"{files}/r.png", "--title", "Ratings")
    with pytest.raises(UserError, match="has no column"):
        plot_curves({"r": read_table(files / "ratings.csv")}, "step", ["elo"])
