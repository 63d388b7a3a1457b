"""The local engine: order, slots, failures, conditions, what runs again, and what does not."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.manifest import Record, open_experiment, read_manifest, read_record
from plyzero.kits.experiments.plan import Plan, make_plan
from plyzero.kits.experiments.runner import MARK, Slots, run_plan
from tests.helpers.experiments import experiment_of
from tests.helpers.surroundings import is_running, wait_until

TWO = Slots(cpus=2, gpus=["slot 0"])


def plan_of(tasks: Mapping[str, Any], *options: str, **parameters: Any) -> Plan:
    """The plan of tasks that are scripts of a shell, of three runs."""
    commands = {name: {"command": f"sh -c {task['sh']!r}", **task} for name, task in tasks.items()}
    for each in commands.values():
        del each["sh"]
    return make_plan(*experiment_of(commands, options, runs=3, **parameters))


def run(plan: Plan, directory: Path, *, slots: Slots = TWO, update: bool = False, **options: Any) -> dict[str, Record]:
    given = {"environment": os.environ, "stop": threading.Event(), **options}
    with open_experiment(directory, plan, update=update) as experiment:
        return run_plan(plan, directory, experiment, slots=slots, **given)


def states(records: Mapping[str, Record]) -> dict[str, str]:
    return {name: record.state for name, record in records.items()}


def made_anew(before: Mapping[str, Record], after: Mapping[str, Record]) -> set[str]:
    """The names of the tasks that have run again."""
    return {name for name in before if after[name].id != before[name].id}


def overlap(first: Record, second: Record) -> bool:
    return first.began < second.ended and second.began < first.ended


@contextmanager
def marked(experiment: str) -> Iterator[subprocess.Popen]:
    """A process that is marked as one of an experiment's tasks."""
    environment = {**os.environ, MARK: experiment}
    with subprocess.Popen(["sleep", "3600"], env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def chain(**train: Any) -> dict[str, Any]:
    """Three kinds of tasks: train and judge of each run, and an average over all."""
    return {
        "train": {"sh": "mkdir -p {out}; echo {seed} > {out}/x", "per_run": True, **train},
        "judge": {"sh": "mkdir -p {out} && cp {run}/train/x {out}/y", "per_run": True, "needs": ["train"]},
        "average": {"sh": "mkdir -p {out}; cat run-*/judge/y > {out}/all", "after": ["judge"]},
    }


def test_tasks_run_in_order_within_the_slots(tmp_path: Path):
    wait = f"timeout 60 sh -c 'until test -e {tmp_path}/judging; do sleep 0.05; done'"  # beside a train, judges run
    tasks = {
        "train": {"sh": f"test {{seed}} = 0 || {wait}", "per_run": True, "gpus": 1, "out": "t"},
        "judge": {"sh": f"touch {tmp_path}/judging; sleep 0.3", "per_run": True, "needs": ["train"]},
        "other": {"sh": "sleep 0.3", "per_run": True},
        "average": {"sh": "true", "after": ["judge"], "cpus": 9},  # takes all slots
    }
    records = run(plan_of(tasks), tmp_path / "x")
    assert {*states(records).values()} == {"done"}
    trains, judges = ([records[f"run-0{number}/{kind}"] for number in range(3)] for kind in ("train", "judge"))
    assert not any(overlap(one, other) for one in trains for other in trains if one is not other)
    assert any(overlap(train, judge) for train in trains for judge in judges)
    assert all(train.ended <= judge.began for train, judge in zip(trains, judges, strict=True))
    jobs = [*records.values()]
    assert all(sum(job.began <= at < job.ended for job in jobs) <= 2 for at in [job.began for job in jobs])
    assert max(judge.ended for judge in judges) <= records["average"].began


def test_a_failure_stops_its_own_run_and_only_it_is_tried_again(tmp_path: Path):
    script = "test {seed} != 1 -o -e ../mended || {{ echo no luck; exit 3; }}; echo {seed} > {out}/x"
    plan, directory = plan_of(chain(sh=f"mkdir -p {{out}}; {script}")), tmp_path / "x"
    first = run(plan, directory)
    tasks = [f"run-0{number}/{kind}" for kind in ("train", "judge") for number in range(3)]
    ends = {"run-01/train": "failed", "run-01/judge": "blocked"}
    assert states(first) == {**dict.fromkeys([*tasks, "average"], "done"), **ends}
    assert first["run-01/train"].reason == "exit code 3: no luck"
    assert first["run-01/judge"].reason == "it needs run-01/train, which failed"
    assert (directory / "average/all").read_text() == "0\n2\n"
    again = run(plan, directory)
    assert made_anew(first, again) == {"run-01/train"}
    (tmp_path / "mended").touch()
    third = run(plan, directory)
    assert {*states(third).values()} == {"done"}
    assert made_anew(first, third) == {"run-01/train", "run-01/judge", "average"}
    assert (directory / "average/all").read_text() == "0\n1\n2\n"


def test_a_second_call_does_nothing(tmp_path: Path):
    plan, directory = plan_of(chain()), tmp_path / "x"
    first = run(plan, directory)
    written = {path: path.stat().st_mtime_ns for path in (directory / "state").rglob("*.json")}
    seen: list[Mapping[str, Record]] = []
    assert run(plan, directory, on_change=seen.append) == first
    assert all(record.state == "done" for records in seen for record in records.values())
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_a_changed_command_or_a_lost_output_runs_what_follows_again(tmp_path: Path):
    directory = tmp_path / "x"
    first = run(plan_of(chain()), directory)
    shutil.rmtree(directory / "run-02/train")
    again = run(plan_of(chain()), directory)
    assert made_anew(first, again) == {"run-02/train", "run-02/judge", "average"}
    (directory / "average/stray").touch()
    other = chain()
    other["average"]["sh"] += " # changed"
    third = run(plan_of(other), directory)
    assert made_anew(again, third) == {"average"}
    assert not (directory / "average/stray").exists()


def test_other_parameters_are_refused_unless_they_are_meant(tmp_path: Path):
    directory, tasks = tmp_path / "x", {"a": {"sh": "echo {size} > {out}"}, "b": {"sh": "echo b > {out}"}}
    first = run(plan_of(tasks, size=3), directory)
    other = plan_of(tasks, "size=4", size=3)
    with pytest.raises(UserError, match="was begun with other parameters: size 3 -> 4; give --out another directory, "):
        run(other, directory)
    second = run(other, directory, update=True)
    assert (directory / "a").read_text() == "4\n"
    assert made_anew(first, second) == {"a"}
    found = read_manifest(directory)
    assert (found["parameters"], len(found["calls"])) == ({"runs": 3, "size": 4}, 2)


def test_what_fails_once_is_repeated_and_counts_once(tmp_path: Path):
    tasks = {
        "a": {"sh": "echo x >> {out}; test $(wc -l < {out}) = 3", "retries": 2},
        "b": {"sh": "false", "retries": 1},
        "c": {"sh": "echo > {out}", "needs": ["a"]},
    }
    records = run(plan_of(tasks), tmp_path / "x")
    assert states(records) == {"a": "done", "b": "failed", "c": "done"}
    assert (records["a"].attempts, records["b"].attempts) == (3, 2)
    assert records["b"].reason == "exit code 1"


def test_a_condition_leaves_the_rest_of_a_run_out_and_says_so_with_the_numbers(tmp_path: Path):
    tasks = chain(sh="mkdir -p {out}/values; echo {seed} > {out}/x; echo 0.{seed} > {out}/values/score")
    tasks["judge"]["when"] = "train.score >= {least}"
    tasks["plot"] = {"sh": "touch {out}", "per_run": True, "needs": ["judge"]}
    records = run(plan_of(tasks, least=0.1), tmp_path / "x")
    left_out = records["run-00/judge"]
    assert (left_out.state, left_out.reason) == ("skipped", "train.score >= 0.1 is false: run-00/train has 0")
    assert records["run-00/plot"].reason == "it needs run-00/judge, which was left out"
    assert [records[f"run-0{number}/plot"].state for number in range(3)] == ["skipped", "done", "done"]
    assert (tmp_path / "x/average/all").read_text() == "1\n2\n"


@pytest.mark.parametrize("content", ["", "nan", "much"])
def test_a_value_that_is_no_number_is_a_failure(content: str, tmp_path: Path):
    tasks = chain(sh=f"mkdir -p {{out}}/values; echo '{content}' > {{out}}/values/score")
    tasks["judge"]["when"] = "train.score >= 0.5"
    record = run(plan_of(tasks), tmp_path / "x")["run-00/judge"]
    assert record.state == "failed"
    assert record.reason == "cannot judge train.score >= 0.5: expected a number in run-00/train/values/score"


def test_what_takes_too_long_is_stopped_with_all_its_processes(tmp_path: Path):
    plan = plan_of({"a": {"sh": "sleep 60 & echo $! > ../pid; wait", "timeout_minutes": 0.005}})
    record = run(plan, tmp_path / "x")["a"]
    assert (record.state, record.reason) == ("failed", "it took longer than 0.005 minutes")
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_what_a_task_leaves_running_ends_with_it(tmp_path: Path):
    plan = plan_of({"a": {"sh": "sleep 60 & echo $! > ../pid"}})
    assert run(plan, tmp_path / "x")["a"].state == "done"
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_a_task_that_was_killed_or_cannot_start_has_failed_with_its_reason(tmp_path: Path):
    plan = make_plan(*experiment_of({"a": {"command": "no-such-program"}}, runs=1))
    assert run(plan, tmp_path / "x")["a"].reason == "cannot start no-such-program: No such file or directory"
    record = run(plan_of({"a": {"sh": "echo last words; kill -9 $$"}}), tmp_path / "y")["a"]
    assert record.reason == "killed by SIGKILL: last words"


def test_a_stop_ends_what_runs_and_starts_nothing_more(tmp_path: Path):
    script, stop = "trap 'echo saved > {out}; exit' TERM; echo > ../runs; sleep 60 & wait", threading.Event()
    threading.Thread(target=lambda: (wait_until((tmp_path / "runs").exists), stop.set())).start()
    records = run(plan_of({"a": {"sh": script}, "b": {"sh": "true", "needs": ["a"]}}), tmp_path / "x", stop=stop)
    assert states(records) == {"a": "stopped"}
    assert (tmp_path / "x/a").read_text() == "saved\n"
    assert read_record(tmp_path / "x", "b") is None


def test_with_fail_fast_nothing_is_started_after_a_failure(tmp_path: Path):
    tasks = {"a": {"sh": "false"}, "b": {"sh": "sleep 0.5; touch {out}"}, "c": {"sh": "touch {out}"}}
    assert states(run(plan_of(tasks), tmp_path / "x", fail_fast=True)) == {"a": "failed", "b": "done"}


def test_tasks_see_their_own_gpus(tmp_path: Path):
    tasks = {"t": {"sh": "mkdir {run}; echo $CUDA_VISIBLE_DEVICES > {out}; sleep 0.3", "per_run": True, "gpus": 1}}
    run(plan_of(tasks, "runs=2"), tmp_path / "x", slots=Slots(2, ["5", "7"]))
    assert {(tmp_path / f"x/run-0{number}/t").read_text() for number in range(2)} == {"5\n", "7\n"}


def test_processes_that_a_killed_runner_has_left_are_ended_first(tmp_path: Path):
    directory, plan = tmp_path / "x", plan_of({"a": {"sh": "true"}})
    with open_experiment(directory, plan) as experiment:
        pass
    with marked(experiment) as left, marked("another") as other:
        run(plan, directory)
        assert left.wait() == -signal.SIGKILL
        assert other.poll() is None


def test_a_copy_has_its_own_id_and_kills_no_task_of_the_original(tmp_path: Path):
    original, copy, moved = tmp_path / "x", tmp_path / "copy", tmp_path / "moved"
    plan = plan_of({"a": {"sh": "true"}})
    with open_experiment(original, plan) as experiment:
        pass
    with marked(experiment) as running:
        shutil.copytree(original, copy)
        assert states(run(plan, copy)) == {"a": "done"}
        assert running.poll() is None
        original.rename(moved)
        with open_experiment(moved, plan) as found:
            assert found == experiment


def test_two_runners_of_one_experiment_refuse_each_other(tmp_path: Path):
    plan = plan_of({"a": {"sh": "true"}})
    with (
        open_experiment(tmp_path / "x", plan),
        pytest.raises(UserError, match="another process runs the experiment"),
    ):
        run(plan, tmp_path / "x")
    (tmp_path / "y").mkdir()
    (tmp_path / "y/thesis.txt").touch()
    with pytest.raises(UserError, match=r"y is not an experiment: it has no experiment.json; give --out another dir"):
        run(plan, tmp_path / "y")
    (tmp_path / "x/experiment.json").write_text("{")
    with pytest.raises(UserError, match=r"use .*experiment.json: it is damaged, or of another version; give --out"):
        run(plan, tmp_path / "x")
    assert [path.name for path in (tmp_path / "y").iterdir()] == ["thesis.txt"]
