"""Old machine code never runs: a change of any kernel source, of this or of another file, compiles the kernel anew."""

import os
import pickle
import re
import shutil
from pathlib import Path

import llvmlite.binding as llvm
import numba
import pytest

from plyzero.errors import UserError
from plyzero.rules.machine_code import CHECKSUM_BYTES, _directory_of, digest_of, visible_names
from plyzero.search import numba_kernel
from plyzero.search.numba_kernel import cached_njit, check_numba, is_compiled, kernel_digest
from tests.helpers.compiling import COUNT_COMPILED
from tests.helpers.surroundings import python

ROOT = Path(__file__).resolve().parent.parent.parent

POLICY = """
import numpy as np
from plyzero.search.policy import policy_target
from plyzero.search.tree import GUMBEL, UNPROVEN

visits, thirds, q = np.int32([3, 0, 1]), np.full(3, 1 / 3), np.array([0.5, np.nan, -0.2])
print(policy_target(GUMBEL, visits, thirds, q, 0.1, UNPROVEN, 50.0, 0.1), sum(policy_target.stats.cache_hits.values()))
"""

WARM = ROOT / "container" / "warm.py"

COUNTED = f"""{COUNT_COMPILED}
import runpy, sys
sys.argv = [{str(WARM)!r}]
runpy.run_path({str(WARM)!r})
print(len(compiled))
"""

EVERY_KERNEL = f"""
import importlib, pickle, pkgutil, runpy, sys
from pathlib import Path
import plyzero.search, plyzero.selfplay.step, plyzero.trainer.targets
from numba.core.dispatcher import Dispatcher

names = [f"plyzero.search.{{each.name}}" for each in pkgutil.iter_modules(plyzero.search.__path__)]
modules = [plyzero.selfplay.step, plyzero.trainer.targets, *map(importlib.import_module, names)]
found = {{value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}}
kernels = {{f"{{each.__module__}}.{{each.__name__}}": each for each in found}}
kernels = {{name: each for name, each in kernels.items() if each.targetoptions["inline"] == "never"}}
if sys.argv[1] == "compile":
    sys.argv = [{str(WARM)!r}, "tic-tac-toe", "pig"]  # without and with dice
    runpy.run_path({str(WARM)!r})
    compiled = {{name: list(each.overloads) for name, each in kernels.items()}}
    Path("signatures").write_bytes(pickle.dumps(compiled))
else:
    for name, signatures in pickle.loads(Path("signatures").read_bytes()).items():
        assert signatures, f"warm.py never calls {{name}}"
        for signature in signatures:
            kernels[name].compile(signature)
            assert kernels[name].stats.cache_hits[signature] == 1, f"{{name}} is not kept"
"""


def policy(copy: Path) -> tuple[str, bool]:
    """Return the policy that the kernel in `copy` makes, and whether its machine code came from the cache."""
    changes: dict[str, str | None] = {name: None for name in os.environ if name.startswith("NUMBA_")}
    changes |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}  # Python's cache believes in times
    found, _, hits = python("-c", POLICY, cwd=copy, **changes).stdout.strip().rpartition(" ")
    return found, hits != "0"


def test_a_process_after_the_first_compiles_nothing():
    if python("-c", COUNTED).stdout.strip() != "0":  # the first one
        assert python("-c", COUNTED).stdout.strip() == "0"


@pytest.mark.slow
def test_every_kernel_is_kept_after_its_first_compilation_under_names_of_its_own(tmp_path: Path):
    """No name that kept code defines for others to see can be that of another process."""
    cache = tmp_path / "kept"
    for step in ("compile", "load"):
        python("-c", EVERY_KERNEL, step, cwd=tmp_path, NUMBA_CACHE_DIR=str(cache), PYTHONPATH=str(ROOT))
    files = list(cache.rglob("*.machinecode"))
    names = {name for path in files for name in visible_names(kept_module(path))}
    assert len(files) > 30
    assert {name for name in names if not re.search(r"v\d{30,}", name)} <= {"NRT_incref", "NRT_decref"}


def kept_module(path: Path) -> llvm.ModuleRef:
    """The bitcode in a file of machine code."""
    (_, _, (_, bitcode)), *_ = pickle.loads(path.read_bytes()[CHECKSUM_BYTES:])
    return llvm.parse_bitcode(bitcode)


def test_it_is_known_whether_the_search_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    directory = _directory_of(cached_njit)
    digest = digest_of(kernel_digest(ROOT / "plyzero" / "search" / "mcts.py"))
    for name in ("batches.advance_all", "policy.principal_variation", "policy.policy_target"):
        assert not is_compiled()
        (directory / f"{name}-{digest}-1.machinecode").touch()
    assert is_compiled()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "more"))
    assert not is_compiled()


@pytest.mark.slow  # the fast form is the next test
def test_an_edit_of_one_kernel_file_is_seen_by_functions_compiled_in_another(tmp_path: Path):
    shutil.copytree(ROOT / "plyzero", tmp_path / "plyzero", ignore=shutil.ignore_patterns("__pycache__"))
    gumbel = tmp_path / "plyzero" / "search" / "gumbel.py"
    text, times = gumbel.read_text(), gumbel.stat()
    before, was_cached = policy(tmp_path)
    assert not was_cached
    assert policy(tmp_path) == (before, True)
    gumbel.write_text(text.replace("(c_visit + max_visits)", "(c_visit - max_visits)"))
    assert gumbel.read_text() != text
    os.utime(gumbel, ns=(times.st_atime_ns, times.st_mtime_ns))  # the times of files do not matter
    after, was_cached = policy(tmp_path)
    assert (after != before, was_cached) == (True, False)
    caches = list((tmp_path / "plyzero" / "search" / "__pycache__").glob("policy.policy_target-*.machinecode"))
    assert len(caches) == 1, "the cache of the older kernel is removed"


@pytest.mark.parametrize("name", ["search/tree.py", "search/gumbel.py", "rules/game.py", "rules/compiled_game.py"])
def test_every_kernel_source_is_part_of_the_digest(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("search", "rules"):
        shutil.copytree(ROOT / "plyzero" / folder, tmp_path / folder)
    step = tmp_path / "step.py"
    step.touch()
    monkeypatch.setattr(numba_kernel, "PACKAGE", tmp_path)
    digests = set()
    for changed in (step, tmp_path / name, step):
        digests.add(kernel_digest.__wrapped__(step))
        changed.write_text(changed.read_text() + "\n# changed\n")
    assert len(digests) == 3


def test_a_version_of_numba_that_was_not_tried_is_refused_with_a_command():
    for version in ("0.61.0", "0.68.1"):
        check_numba(version)
    for version in ("0.60.0", "0.69.0", "1.0.0rc1"):
        with pytest.raises(UserError, match=rf"found {version}: pip install 'numba>=0.61,<0.69'"):
            check_numba(version)
