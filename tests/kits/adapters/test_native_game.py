"""Rules in a shared library: those of the example are those of the included game, and what is wrong is said."""

import ctypes
import functools
import itertools
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import plyzero as public
from plyzero.check.agreement import COMPILED_LAWS, agreement_with
from plyzero.check.laws import GameTrace
from plyzero.check.violations import GAME_LAWS, GameLaws, find_violation, laws_of, play_until_violation
from plyzero.errors import UserError
from plyzero.kits.adapters import native_game
from plyzero.kits.adapters.native_game import NativeGame
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import awaiting_setup
from plyzero.rules.game import Game, Outcome
from plyzero.run.replay import check_rules
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch, Uniform
from plyzero.search.slots import search
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import SearchSettings, Settings
from tests.helpers import toys
from tests.helpers.cli import plyzero, plyzero_process, refused
from tests.helpers.compiling import COUNT_COMPILED
from tests.helpers.dice import Race
from tests.helpers.runs import SMALL, play_segment, records_by_seed, small_run
from tests.helpers.setups import CompiledHeaps, start_of
from tests.helpers.surroundings import wait_until
from tests.helpers.toys import CompiledHarvest, Counted

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "native"
C_OF_RACE = """
#include "plyzero.h"
typedef struct { int8_t at[2], begun, thrown, to_play; } State;
static const float probabilities[] = {.5f, .25f, .125f, .125f};
static const int steps[] = {1, 3, 4, 2};
void plyzero_start(void *state) { (void)state; }
void plyzero_legal(const void *state, bool *mask) { (void)state; mask[0] = mask[1] = true; }
void plyzero_chances(const void *state, float *weights) {
  const State *s = state;
  if (!s->begun) weights[0] = .75f, weights[1] = .25f;
  else if (s->thrown) for (int roll = 0; roll < 4; roll++) weights[roll] = probabilities[roll];
}
void plyzero_play(void *state, int32_t action) {
  State *s = state;
  if (!s->begun) s->begun = 1, s->at[1] = action;
  else if (!s->thrown && action == 1) s->thrown = 1;
  else if (s->thrown && action == 3) s->at[s->to_play] += 2;
  else {
    s->at[s->to_play] += s->thrown ? steps[action] : 2;
    s->thrown = 0;
    s->to_play = 1 - s->to_play;
  }
}
int32_t plyzero_outcome(const void *state) {
  const State *s = state;
  for (int player = 0; player < 2; player++)
    if (s->at[player] >= 7) return s->at[player] == 8 ? PLYZERO_DRAW : player;
  return PLYZERO_ONGOING;
}
void plyzero_observe(const void *state, float *planes) {
  const State *s = state;
  planes[s->at[s->to_play]] = planes[11 + s->at[1 - s->to_play]] = 1;
}
"""
C_OF_HEAPS = """
#include "plyzero.h"
typedef struct { int8_t heaps[3], to_play; } State;
void plyzero_start(void *state) {
  State *s = state;
  s->heaps[0] = 1, s->heaps[1] = 2, s->heaps[2] = 3;
}
void plyzero_set_up(void *state, uint32_t number) {
  State *s = state;
  for (int heap = 0; heap < 3; heap++) s->heaps[heap] = 1 + (number >> 2 * heap & 3);
}
void plyzero_legal(const void *state, bool *mask) {
  const State *s = state;
  for (int heap = 0; heap < 3; heap++) mask[2 * heap] = s->heaps[heap] >= 1, mask[2 * heap + 1] = s->heaps[heap] >= 2;
}
void plyzero_play(void *state, int32_t action) {
  State *s = state;
  s->heaps[action / 2] -= action % 2 + 1;
  s->to_play = 1 - s->to_play;
}
int32_t plyzero_outcome(const void *state) {
  const State *s = state;
  return s->heaps[0] + s->heaps[1] + s->heaps[2] ? PLYZERO_ONGOING : 1 - s->to_play;
}
void plyzero_observe(const void *state, float *planes) {
  const State *s = state;
  for (int heap = 0; heap < 3; heap++) planes[5 * heap + s->heaps[heap]] = 1;
}
"""
C_OF_HARVEST = """
#include "plyzero.h"
typedef struct { int8_t taken[2], plies, max_plies, to_play; } State;
void plyzero_start(void *state) { ((State *)state)->max_plies = 6; }
void plyzero_legal(const void *state, bool *mask) { (void)state; mask[0] = mask[1] = mask[2] = true; }
void plyzero_play(void *state, int32_t action) {
  State *s = state;
  s->taken[s->to_play] += action;
  s->plies += 1;
  s->to_play = 1 - s->to_play;
}
int32_t plyzero_outcome(const void *state) {
  const State *s = state;
  int lead = s->taken[0] - s->taken[1];
  return s->plies < s->max_plies ? PLYZERO_ONGOING : lead == 0 ? PLYZERO_DRAW : lead < 0;
}
double plyzero_score(const void *state) {
  const State *s = state;
  int lead = s->taken[0] - s->taken[1];
  return lead < 0 ? -lead : lead;
}
void plyzero_observe(const void *state, float *planes) {
  const State *s = state;
  planes[0] = s->taken[s->to_play], planes[1] = s->taken[1 - s->to_play], planes[2] = s->max_plies - s->plies;
}
"""
PLAYED = f"""{COUNT_COMPILED}import sys
from native_four import ConnectFour
position = ConnectFour()
for action in (0, 1, 0, 1, 0, 1, 0):
    position = position.play(action)
print(len(compiled) > 0, position.outcome().winner, int(ConnectFour().play(2).observe().sum()))
"""

SETTINGS = Settings.model_validate({"selfplay": {"parallel_games": 8, "simulations": 16, "fast_simulations": 4}})

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="the rules in C need a C compiler, cc")


def compile_c(source: str, library: Path) -> Path:
    """Compile `source` to a new file in place of `library`, with warnings as errors unless it is faulty."""
    command = ["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-I", str(ROOT / "plyzero" / "kits" / "adapters")]
    beside = library.with_suffix(".new")
    subprocess.run([*command, "-x", "c", "-o", str(beside), "-"], input=source, text=True, check=True)
    beside.replace(library)
    return library


def make_game(folder: Path, *changes: tuple[str, str], state: str = "") -> Path:
    """Make the example in `folder` as the module native_four, with changes in its C; return the library.

    state: further fields of State, before the others.
    """
    source = (EXAMPLE / "connect_four.c").read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new, 1)
    python = (EXAMPLE / "connect_four.py").read_text().replace('np.dtype([("', f'np.dtype([{state}("')
    (folder / "native_four.py").write_text(python)
    return compile_c(source, folder / "libconnect_four.so")


def fresh(folder: Path) -> Game:
    """Load the game in `folder` as if no other test had loaded a module of this name."""
    sys.modules.pop("native_four", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return load_game("native_four:ConnectFour").start


@pytest.fixture
def four(tmp_path: Path) -> Game:
    make_game(tmp_path)
    return fresh(tmp_path)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> type[NativeGame]:
    folder = tmp_path_factory.mktemp("example")
    make_game(folder)
    return type(fresh(folder))


def native(library: Path, start: Game) -> NativeGame:
    """Return the game in `library` with the sizes of another one."""
    names = "State num_actions num_chances setups observation_shape max_plies max_score action_names roll_names"
    sizes = {name: getattr(start, name) for name in names.split()}
    return type("Native", (NativeGame,), {"library": library, **sizes})()


def check_same(native: NativeGame, compiled: Game, evaluate: Evaluate, settings: Settings = SETTINGS) -> None:
    """Check that the rules agree, and that the games of self-play are the same byte for byte."""
    law = agreement_with(lambda: compiled)
    assert find_violation(lambda: native, games=5, extra_laws=[law]) is None
    one, other = (records_by_seed(start, settings, evaluate, count=4) for start in (native, compiled))
    assert one == other


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the game in `folder`."""
    sys.modules.pop("native_four", None)
    return plyzero("check", "native_four:ConnectFour", "--games", "1", cwd=folder)


def test_the_example_keeps_the_laws_and_its_games_are_byte_for_byte_those_of_the_included_game(example):
    check_same(example(), load_game("connect-four").start, Uniform(7))


def test_the_laws_of_a_native_game_are_a_class_of_tests(example: type[NativeGame]):
    laws = type("Laws", (GameLaws,), {"game": example, "games": 1})()
    for name in ("test_state_has_all", "test_rules_answer", "test_compiled_as_written"):
        getattr(laws, name)()


def test_dice_work_as_in_a_compiled_game(tmp_path: Path):
    check_same(native(compile_c(C_OF_RACE, tmp_path / "librace.so"), Race()), Race(), Uniform(2))


def test_set_ups_work_as_in_a_compiled_game(tmp_path: Path):
    compiled = start_of(CompiledHeaps)
    usual = native(compile_c(C_OF_HEAPS, tmp_path / "libheaps.so"), compiled)
    assert (usual.awaits_setup, usual.record["heaps"].tolist()) == (False, [1, 2, 3])
    start = awaiting_setup(usual)
    assert start.as_plain_python().awaits_setup
    assert pickle.loads(pickle.dumps(start.__getstate__()))["awaits_setup"]
    for number in (0, 27, 2**32 - 1):
        assert start.play(number).key() == compiled.play(number).key()
    check_same(start, compiled, Uniform(6))


def test_a_library_without_its_set_ups_and_one_that_writes_elsewhere_are_told(tmp_path: Path):
    start = start_of(CompiledHeaps)
    library = compile_c(C_OF_HEAPS.replace("plyzero_set_up", "plyzero_setup"), tmp_path / "libother.so")
    with pytest.raises(UserError, match="has no function plyzero_set_up"):
        native(library, start)
    wrong = C_OF_HEAPS.replace("s->heaps[heap] = 1 +", "((int8_t *)state)[heap + 4] = s->to_play +")
    game = native(compile_c(wrong, tmp_path / "libwrong.so"), start)
    broken = find_violation(lambda: game, games=1)
    assert re.search(r"plyzero_set_up\(\d+\) writes to byte 4 of the state, which has bytes 0 to 3", broken.what)


def test_points_work_as_in_a_compiled_game(tmp_path: Path):
    start = toys.variant(CompiledHarvest, final_planes=0)()
    weighted = SETTINGS.model_copy(update={"search": SearchSettings(score_weight=0.5)})
    check_same(native(compile_c(C_OF_HARVEST, tmp_path / "libharvest.so"), start), start, Counted(6), weighted)
    library = compile_c(C_OF_HARVEST.replace("plyzero_score", "plyzero_points"), tmp_path / "libother.so")
    with pytest.raises(UserError, match="has no function plyzero_score"):
        native(library, start)


@pytest.mark.skipif(not shutil.which("rustc"), reason="rules in Rust need rustc")
def test_the_example_in_rust_makes_a_game(tmp_path: Path):
    source = ROOT / "examples" / "native" / "nim.rs"
    command = ["rustc", "--crate-type", "cdylib", "-O", "-o", str(tmp_path / "libnim.so"), str(source)]
    subprocess.run(command, check=True)

    class RustNim(NativeGame):
        library = tmp_path / "libnim.so"
        State = np.dtype([("stones", "i1"), ("to_play", "i1")])
        num_actions, observation_shape, max_plies = 3, (21, 1, 1), 21

    assert find_violation(RustNim, games=3) is None
    assert toys.after(RustNim(), " ".join("0" * 21)).outcome() == Outcome(winner=0)  # who takes the last of 21


def test_the_functions_are_called_without_compiled_code_too(tmp_path: Path):
    make_game(tmp_path)
    assert process(tmp_path, NUMBA_DISABLE_JIT="1") == b"False 0 1\n"


def process(folder: Path, program: str = PLAYED, content: bytes = b"", **environment: str) -> bytes:
    """Return what a process of its own prints, which finds the game in `folder`."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"} | environment
    return subprocess.run([sys.executable, "-c", program], input=content, env=environment, stdout=-1, check=True).stdout


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_a_third_calls_the_library_that_was_built_again(tmp_path: Path):
    played = functools.partial(process, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    make_game(tmp_path)
    assert [played(), played()] == [b"True 0 1\n", b"False 0 1\n"]
    make_game(tmp_path, ("s->result = s->to_play", "s->result = 1 - s->to_play"), ("] = 1;", "] = 3;"))
    assert played() == b"True 1 3\n"
    make_game(tmp_path)
    assert played() == b"False 0 1\n"  # the first one's code, which is still there


def test_two_libraries_in_one_process_keep_their_own_rules(tmp_path: Path, example: type[NativeGame]):
    other = compile_c((EXAMPLE / "connect_four.c").read_text().replace("] = 1;", "] = 3;"), tmp_path / "libother.so")
    changed = type("Changed", (example,), {"library": other})
    for game, value in ((example, 1), (changed, 3), (example, 1)):
        seen: set[float] = set()
        search([game().play(0)], functools.partial(uniform_and_seen, seen), simulations=8)
        assert seen == {0, value}


def uniform_and_seen(seen: set[float], batch: EvaluationBatch) -> Evaluation:
    seen.update(np.unique(batch.observations).tolist())
    return Uniform(7)(batch)


def test_a_library_that_is_built_again_is_not_mixed_with_the_one_in_use(tmp_path: Path, four: Game):
    start = four.play(3)
    make_game(tmp_path, ("] = 1;", "] = 3;"))
    with pytest.raises(UserError, match="has been built again since this process loaded it: start the process again"):
        type(four)()
    assert start.play(0).observe().max() == 1
    make_game(tmp_path)
    assert type(four)().play(0).observe().max() == 1


def test_a_position_is_pickled_and_played_on_in_another_process(tmp_path: Path, four: Game):
    position = four.play(3).play(3)
    content = pickle.dumps(position)
    assert len(content) < 1000
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).play(2).key().hex())"
    assert process(tmp_path, code, content).decode().strip() == position.play(2).key().hex()


def test_rules_that_have_changed_are_noticed_by_a_run(tmp_path: Path, four: Game, monkeypatch: pytest.MonkeyPatch):
    run = small_run(tmp_path / "r", "native_four:ConnectFour")
    play_segment(run, full=60)
    check_rules(run)
    source = (EXAMPLE / "connect_four.c").read_text().replace("count >= 4", "count >= 3")
    monkeypatch.setattr(type(four), "library", compile_c(source, tmp_path / "libthree.so"))
    with pytest.raises(UserError, match="are not those that made the games"):
        check_rules(replace(run, game=load_game("native_four:ConnectFour")))


STDLIB = ("#include", "#include <stdlib.h>\n#include")
PLAY, PLIES = "void plyzero_play(void *state, int32_t action) {", "s->plies++;"
LEGAL = "column < COLUMNS; column++) mask"
OBSERVE = "void plyzero_observe(const void *state, float *planes) {"
END = "s->to_play = 1 - s->to_play;"
REMEMBERED = [
    (PLAY, f"static State last;\n{PLAY} if (((State *)state)->plies) *(State *)state = last;"),
    (END, f"{END} last = *s;"),
]
PACKED = ("typedef struct {", "typedef struct __attribute__((packed)) { void *made;")
ALLOCATED = [STDLIB, PACKED, (PLIES, f"{PLIES} s->made = malloc(8);")]


@pytest.mark.parametrize(
    ("changes", "state", "law", "words"),
    [
        ([(OBSERVE, f"{OBSERVE} planes[84] = 0;")], "", "rules_answer", "writes to byte 336 of planes"),
        ([(LEGAL, LEGAL.replace("<", "<="))], "", "rules_answer", "plyzero_legal() writes to byte 7 of mask"),
        ([(PLIES, f"{PLIES} s->board[-1][6] = 1;")], "", "play_makes_a_new_position", "writes to byte -1 of the state"),
        ([("] = 1;", "] = s->board[7][0];")], "", "state_has_all", "observe() differs"),
        ([(PLAY, f"static int all;\n{PLAY}"), (PLIES, "s->plies = ++all;")], "", "state_has_all", "different states"),
        ([(OBSERVE, f"static float seen;\n{OBSERVE}"), ("] = 1;", "] = seen++;")], "", "state_has_all", "same state "),
        (REMEMBERED, "", "state_has_all", "two games with the same moves have different states"),
        (ALLOCATED, '("made", "i8"), ', "state_has_all", "without pointers"),
    ],
    ids=["planes", "mask", "state", "read beyond", "counter", "observations", "last position", "pointer"],
)
def test_check_finds_functions_that_leave_their_bytes(tmp_path: Path, changes, state, law, words):
    make_game(tmp_path, *changes, state=state)
    start = fresh(tmp_path).as_plain_python()
    laws = [each for each in laws_of(start) if each in (*GAME_LAWS, *COMPILED_LAWS)]
    found = play_until_violation(GameTrace(lambda: start), laws, lambda legal: legal[-1])
    assert (found.law.name, words in found.what) == (law, True), found


def is_refused(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert (done.returncode, done.stdout, len(done.stderr.splitlines()), words in done.stderr) == (2, "", 1, True), done


CRASH = "*(volatile int *)0 = 1;"
ZERO = "for (volatile int i = 0, zero = 0; i < 1; i++) i /= zero;"
READ = "const State *s = state;\n  for (int column"
LIBRARY = "of libconnect_four.so ends the process with"


HANG = "for (volatile int i = 1; i;) {}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("= PLYZERO_ONGOING;", f"= PLYZERO_ONGOING; {HANG}")], "plyzero_start()"),
        ([(PLIES, f"if (s->plies == 5) {HANG} {PLIES}")], "plyzero_play(0)"),
        ([("#include", "#include <unistd.h>\n#include"), (PLIES, f"if (!action) pause(); {PLIES}")], "plyzero_play(0)"),
    ],
    ids=["start", "play", "without using the processor"],
)
def test_check_says_which_function_does_not_return(tmp_path: Path, monkeypatch, changes, words):
    monkeypatch.setattr(native_game, "CALL_SECONDS", 0.2)
    make_game(tmp_path, *changes)
    is_refused(check(tmp_path), f"{words} of libconnect_four.so has not returned for 0.2 s in the state ([[")


WAIT = "is_inside = 1; for (int i = 0; i < 5000 && !may_go_on; i++) usleep(1000); waited_in_vain |= !may_go_on;"


def play_a_game(start: Game) -> None:
    games = GamesInPlay(start, SETTINGS, seeds=itertools.count())
    while not games.run(Uniform(7)):
        pass


@pytest.mark.parametrize("call", [play_a_game, lambda start: start.play(3)], ids=["self-play", "Python"])
def test_other_threads_go_on_while_rules_in_c_run(tmp_path: Path, call: Callable[[Game], object]):
    waiting = ("#include", "#include <unistd.h>\nvolatile int is_inside, may_go_on, waited_in_vain;\n#include")
    make_game(tmp_path, waiting, (PLIES, f"{WAIT} {PLIES}"))
    start = fresh(tmp_path)
    is_inside, may_go_on, waited = (
        ctypes.c_int.in_dll(start.load(), name) for name in ("is_inside", "may_go_on", "waited_in_vain")
    )

    def let_go() -> None:
        wait_until(lambda: is_inside.value)
        may_go_on.value = 1

    thread = threading.Thread(target=let_go)
    thread.start()
    call(start)
    thread.join()
    assert not waited.value


ENDED = "plyzero: code in C has called exit(), which has ended the process; plyzero check native_four:ConnectFour says "


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ([], 0, ""),
        ([STDLIB, (PLIES, f"if (s->plies == 3) exit(0); {PLIES}")], 1, ENDED),
        ([(PLIES, f"if (s->plies == 3) {CRASH} {PLIES}")], -signal.SIGSEGV, "Fatal Python error: Segmentation fault"),
    ],
    ids=["a good end", "exit(0)", "a fault"],
)
def test_a_process_that_rules_in_c_have_ended_is_no_success_and_says_so(tmp_path: Path, changes, code, words):
    make_game(tmp_path, *changes)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", PLAYED], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "" if code else "False 0 1\n")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([(PLIES, f"if (s->plies == 5) {CRASH} {PLIES}")], f"plyzero_play(0) {LIBRARY} SIGSEGV (Segmentation fault)"),
        ([(READ, f"if (((State *)state)->plies > 3) {CRASH} {READ}")], f"plyzero_legal() {LIBRARY} SIGSEGV"),
        ([("= PLYZERO_ONGOING;", f"= PLYZERO_ONGOING; {CRASH}")], f"plyzero_start() {LIBRARY} SIGSEGV"),
        ([STDLIB, (PLIES, f"if (s->plies > 3) abort(); {PLIES}")], "SIGABRT (Aborted) in the state ([["),
        ([(PLIES, f"{PLIES} {ZERO}")], "SIGFPE"),
    ],
    ids=["play", "legal", "start", "abort", "division"],
)
def test_check_says_in_one_sentence_which_function_ends_the_process(tmp_path: Path, changes, words):
    make_game(tmp_path, *changes)
    is_refused(check(tmp_path), words)


def test_check_says_which_function_has_called_exit(tmp_path: Path):
    make_game(tmp_path, STDLIB, (PLIES, f"if (s->plies > 3) exit(3); {PLIES}"))
    done = plyzero_process("check", "native_four:ConnectFour", "--games", "1", cwd=tmp_path)
    is_refused(done, f"{LIBRARY} exit code 3 in the state ([[")


def test_check_prints_the_broken_law_that_the_trial_has_found(tmp_path: Path):
    make_game(tmp_path, (LEGAL, LEGAL.replace("<", "<=")))
    done = check(tmp_path)
    assert done.returncode == 1, done
    assert "plyzero_legal() writes to byte 7 of mask, which has bytes 0 to 6\nmoves: none" in done.stdout


def test_a_library_that_cannot_be_used_is_refused_in_one_sentence(tmp_path: Path):
    library = make_game(tmp_path)
    elf = bytearray(library.read_bytes())
    without = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(tmp_path / "empty.so")], input=b"")
    assert without.returncode == 0
    contents = {
        "No such file or directory: ": None,
        "for this processor, ": bytes([*elf[:18], 0xF3 if elf[18] != 0xF3 else 0x3E, 0, *elf[20:]]),
        "invalid ELF header": b"int plyzero_start(void *state);" * 99,
        "file too short": b"",
        "no function plyzero_start, plyzero_play, plyzero_outcome, plyzero_legal, plyzero_observe: "
        "define it as plyzero.h does, in C++ in extern": (tmp_path / "empty.so").read_bytes(),
    }
    for number, (words, content) in enumerate(contents.items()):
        python = (EXAMPLE / "connect_four.py").read_text().replace("libconnect", f"lib{number}")
        (tmp_path / f"bad{number}.py").write_text(python)
        if content is not None:
            (tmp_path / f"lib{number}_four.so").write_bytes(content)
        found = refused("check", f"bad{number}:ConnectFour", cwd=tmp_path)
        assert found.startswith(f"plyzero: cannot create bad{number}:ConnectFour: ")
        assert words in found


def test_a_rule_in_the_class_of_a_native_game_is_refused():
    with pytest.raises(TypeError, match="a native game has its rules in the library, so remove legal"):
        type("Mixed", (NativeGame,), {"legal": lambda s, mask: None})


@pytest.mark.slow
def test_a_worker_whose_rules_in_c_hang_ends_when_it_is_asked_to(tmp_path: Path):
    hang = f'if (!access("hang", F_OK)) {{ puts("in a loop"); fflush(stdout); {HANG} }}'
    make_game(tmp_path, ("#include", "#include <stdio.h>\n#include <unistd.h>\n#include"), (PLIES, f"{hang} {PLIES}"))
    command = [sys.executable, "-m", "plyzero", "selfplay", "--run", "r", "--game", "native_four:ConnectFour"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    log = tmp_path / "log"
    with log.open("w") as output:
        worker = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: " plays native_four:ConnectFour" in log.read_text(), alive=worker)
        (tmp_path / "hang").touch()
        wait_until(lambda: "in a loop" in log.read_text(), alive=worker)
        worker.terminate()
        assert worker.wait(100) == 1
    finally:
        worker.kill()
    said = "plyzero: the games have not gone on for 8 s since this process was to stop; if its rules hang, this says "
    assert f"{said}which function: plyzero check native_four:ConnectFour\n" in log.read_text()


@pytest.mark.slow
def test_it_is_played_in_processes_of_a_ladder(tmp_path: Path):
    make_game(tmp_path)
    players = ("--players", "mcts:8", "random", "--games", "4", "--processes", "2", "--out", "ladder")
    done = plyzero_process("ladder", "native_four:ConnectFour", *players, cwd=tmp_path)
    assert done.returncode == 0, done


@pytest.mark.slow
def test_a_bot_is_trained_by_the_processes_of_a_run(tmp_path: Path):
    make_game(tmp_path)
    small = [argument for option in SMALL for argument in ("-o", option)]
    command = ("train", "native_four:ConnectFour", "--run", "r", "--workers", "1", "--steps", "5", *small)
    done = plyzero_process(*command, cwd=tmp_path)
    assert done.returncode == 0, done
    shown = plyzero_process("play", "native_four:ConnectFour", "--run", "r", text="4\nquit\n", cwd=tmp_path)
    assert "The bot plays " in shown.stdout, shown
    assert "0 faults" in plyzero_process("replay", "verify", "--rules", "--run", "r", cwd=tmp_path).stdout


def test_the_public_name_is_found_by_an_entry_point_and_its_user_can_change_the_rules():
    assert public.NativeGame is NativeGame
    assert "NativeGame" in public.__all__
    assert not NativeGame.is_adapted
