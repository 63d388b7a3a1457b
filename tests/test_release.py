"""A release is one tag: its workflow fits its schema and holds no token, and its files install plyzero alone."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
STEPS = ROOT / ".ci" / "release"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
JOBS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]


def release(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Take a step of a release with this Python."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [str(cwd / STEPS.relative_to(ROOT)), *arguments]
    return subprocess.run(
        command, cwd=cwd, env=variables | {"PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )


def test_only_the_tag_of_the_version_in_pyproject_is_released():
    assert release("version", f"v{VERSION}").returncode == 0
    refused = release("version", "v9.9.9")
    assert refused.returncode == 1
    assert refused.stderr == f"expected the tag v{VERSION}, the version in pyproject.toml, got v9.9.9\n"


def test_an_unknown_step_is_refused():
    assert release("buidl").stderr == "expected version, build, try or images, got buidl\n"


def test_only_the_last_job_may_publish_and_it_holds_no_token():
    (publisher,) = (name for name, job in JOBS.items() if "id-token" in job.get("permissions", {}))
    publishing = JOBS[publisher]
    assert publishing["permissions"] == {"id-token": "write"}
    assert publishing["environment"] == "release"
    assert not any("with" in step and "password" in step["with"] for step in publishing["steps"])
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()

    needed, waiting = set[str](), [publisher]
    while waiting:
        needs = JOBS[waiting.pop()].get("needs", [])
        waiting += [needs] if isinstance(needs, str) else needs
        needed |= set(waiting)
    assert needed == JOBS.keys() - {publisher}


def test_every_step_is_one_line_and_every_action_has_a_version():
    steps = [step for job in JOBS.values() for step in job.get("steps", [])]
    assert [step["run"] for step in steps if "\n" in step.get("run", "")] == []
    actions = [step["uses"] for step in steps if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@(v\d+|release/v\d+)", action)] == []
    taken = {step["run"].split()[1] for step in steps if step.get("run", "").startswith(".ci/release ")}
    assert taken == {"version", "build", "try", "images"}


@pytest.mark.slow
def test_the_workflows_fit_their_schema():
    checker = Path(sys.executable).with_name("check-jsonschema")
    workflows = sorted((ROOT / ".github" / "workflows").iterdir())
    done = subprocess.run(
        [checker, "--builtin-schema", "vendor.github-workflows", *workflows],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_both_files_of_a_release_work_in_empty_environments_and_install_the_same(tmp_path: Path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    built = release("build", cwd=clone)
    assert built.returncode == 0, built.stderr
    (source,) = (clone / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert [each.name for each in archive if each.issym() or each.islnk()] == []
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"plyzero/selfplay/step.py", "plyzero/trainer/loop.py", "plyzero/games/hex.py"} <= names
    assert {name.partition("/")[0] for name in names if name.endswith(".py")} == {"plyzero"}
    tried = release("try", cwd=clone)
    assert tried.returncode == 0, tried.stderr
