"""Attack the processes of a run at random, all attacks together, and count every game that they acknowledge.

python benchmarks/attacks.py --run runs/attacks --minutes 30 --seed 1

Workers and the trainer are killed all the time. Besides, one attack after another: system calls that fail, processes
that are suspended, entries that cannot be read, a full volume, wrong clocks, files that only their owner may read. As
root with bindfs the processes use two mounts across which locks do not reach, are of two users, and the run lies on a
small ext4 volume. At the end no game is lost, none was taken in twice, and no process died that was not killed.
"""

import argparse
import errno
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for tests.helpers

from tests.helpers.attacks import CALLS, TRAINER_UID, WORKERS_UID, Crew, Member, attacked_run, permit
from tests.helpers.volumes import KINDS, NAMES, bad_entries, full, image, lacks, two_mounts

LINE_SECONDS = 15.0
WORKER_KILL_SECONDS = 3.0, 9.0
TRAINER_KILL_SECONDS = 20.0, 40.0
START_SECONDS = 60.0
"""Time that a trainer has to start on a busy machine before it is killed all the same."""

ATTACK_SECONDS = 3.0, 12.0
PAUSE_SECONDS = 1.0, 5.0
ROUND_SECONDS = 150.0
"""Time after which all processes are stopped and started again on other mounts and as other users."""

ERRORS = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES, errno.ENOMEM)
WRITE_ERRORS = (errno.EIO, errno.ENOSPC, errno.ESTALE)
DIRECTORIES = ("replay", "journal", "models", "workers", "trainer", "metrics")

Attack = Callable[[Crew, random.Random], AbstractContextManager[str]]


def main() -> int:
    """Attack, settle, report, and return 1 if something that has to hold does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a new directory")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random")
    given = parser.parse_args()
    if missing := lacks("gcc"):
        parser.error(missing)
    directory = given.run.absolute()
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    chance, began = random.Random(given.seed), time.monotonic()
    with ExitStack() as stack:
        volume = directory / "volume"
        if not (no_volume := lacks("root", "loop")):
            stack.enter_context(image(directory, megabytes=256, inodes=12_000))
        volume.mkdir(exist_ok=True)
        mounts = [volume]
        print(f"a small volume: {no_volume or 'yes'}")
        if not (missing := lacks("bindfs")):
            mounts += stack.enter_context(two_mounts(directory, source=volume))
        print(f"two mounts: {missing or 'yes'}")
        run = attacked_run(volume / "run", "selfplay.seal_seconds=4")
        possible = dict(ATTACKS)
        if no_volume:
            possible.pop("volume", None)
        if os.geteuid() != 0:
            possible.pop("owner", None)
        crew = Crew(directory, run, workers=3, seed=given.seed)
        choose_places(crew, mounts, chance)
        with crew:
            with ExitStack() as under:
                attack(crew, under, possible, mounts, chance, seconds=60 * given.minutes)
            log(crew, time.monotonic() - began, "settling")
            report = crew.settle()
        report["in quarantine"] = [path.name for path in run.quarantine.glob("w*")]
    report["minutes"] = round((time.monotonic() - began) / 60, 1)
    (directory / "attacks.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    wrong = [report[key] for key in ("lost", "twice", "died", "faults", "in quarantine")]
    return 1 if any(wrong) or not report["acknowledged"] else 0


def attack(
    crew: Crew,
    under: ExitStack,
    possible: dict[str, Attack],
    mounts: list[Path],
    chance: random.Random,
    *,
    seconds: float,
) -> None:
    """Kill and attack for `seconds`, in rounds on other mounts, and print a line every LINE_SECONDS.

    under: holds the attack that is on.
    """
    began = now = time.monotonic()
    next_line = began + LINE_SECONDS
    next_round = began + ROUND_SECONDS
    kill_worker_at = began + chance.uniform(*WORKER_KILL_SECONDS)
    kill_trainer_at = began + chance.uniform(*TRAINER_KILL_SECONDS)
    change_at, shown = began + 5, 0
    what = "starting"
    account = crew.account
    resumed = 0
    weights = [4 if name == "calls" else 1 for name in possible]  # there are many ways to fail
    while now < began + seconds:
        crew.work(0.1)
        now = time.monotonic()
        if now >= kill_worker_at:
            crew.kill(chance.choice(crew.workers))
            kill_worker_at = now + chance.uniform(*WORKER_KILL_SECONDS)
        if now >= kill_trainer_at and (account.read().resumed > resumed or now >= kill_trainer_at + START_SECONDS):
            crew.kill(crew.trainer)
            resumed = account.resumed
            kill_trainer_at = now + chance.uniform(*TRAINER_KILL_SECONDS)
        if now >= change_at:
            under.close()
            if what == "no attack" and now < next_round:
                what = under.enter_context(chance.choices(list(possible.values()), weights)[0](crew, chance))
                change_at = now + chance.uniform(*ATTACK_SECONDS)
            else:
                what = "no attack"
                change_at = now + chance.uniform(*PAUSE_SECONDS)
                if now >= next_round:
                    new_round(crew, mounts, chance)
                    next_round = time.monotonic() + ROUND_SECONDS
        for died in crew.died[shown:]:
            print(f"       {what}: {died}", flush=True)
        shown = len(crew.died)
        if now >= next_line:
            log(crew, now - began, what)
            next_line = now + LINE_SECONDS


def log(crew: Crew, seconds: float, what: str) -> None:
    """Print the time, the counts and the current attack."""
    account, kills = crew.account.read(), crew.kills
    games = f"acknowledged {len(account.acknowledged)}, not yet taken in {len(account.missing)}, twice {account.twice}"
    ends = f"killed {kills['worker']} workers, {kills['trainer']} trainers, died {len(crew.died)}"
    print(f"{int(seconds) // 60:3}:{int(seconds) % 60:02}  {games}; {ends}; {what}", flush=True)


def new_round(crew: Crew, mounts: list[Path], chance: random.Random) -> None:
    """Stop all processes, and start them on other mounts and, if possible, as other users."""
    members = list(crew.members.values())
    crew.work(2.0)  # killed processes start again and seal the games they left
    crew.stop(*members)
    choose_places(crew, mounts, chance)
    for member in members:
        crew.start(member)


def choose_places(crew: Crew, mounts: list[Path], chance: random.Random) -> None:
    """Choose the mounts and users of all processes; the trainer is always of one user, as its files are."""
    crosses = len(mounts) > 1 and crew.trainer.root.parent == mounts[0]  # every second round, from the first on
    workers, trainer = (mounts[1], mounts[-1]) if crosses else (mounts[0], mounts[0])
    users = os.geteuid() == 0
    crew.trainer.root, crew.trainer.uid = trainer / "run", TRAINER_UID if users else None
    uid = chance.choice((TRAINER_UID, WORKERS_UID)) if users else None
    for member in crew.workers:
        member.root, member.uid = workers / "run", uid
    print(f"       workers: {workers}, user {uid}; trainer: {trainer}", flush=True)


@contextmanager
def failing_calls(crew: Crew, chance: random.Random) -> Iterator[str]:
    """One error, in one directory, of some calls, always or often, for one process or all."""
    members = chance.choice([[chance.choice(list(crew.members.values()))], list(crew.members.values())])
    if chance.random() < 0.7:
        error, calls = (
            chance.choice(ERRORS),
            chance.choice(["open", "read", "list", "open read", "open read stat list"]),
        )
    else:
        error, calls = chance.choice(WRITE_ERRORS), chance.choice(["link", "rename", "write", "sync", " ".join(CALLS)])
    part, share = chance.choice(DIRECTORIES), chance.choice([1.0, 0.5, 0.2])
    for member in members:
        member.control.fail(error, calls, f"/{part}", share=share)
    yield f"{errno.errorcode[error]} of {share:.0%} of {calls} in {part}/ for {names(members)}"
    for member in members:
        member.control.clear()


@contextmanager
def suspended(crew: Crew, chance: random.Random) -> Iterator[str]:
    """Some processes are suspended; those that are killed meanwhile start anew."""
    members = chance.sample(list(crew.members.values()), chance.randint(1, len(crew.members)))
    crew.signal(signal.SIGSTOP, *members)
    yield f"{names(members)} suspended"
    crew.signal(signal.SIGCONT, *members)


@contextmanager
def entries(crew: Crew, chance: random.Random) -> Iterator[str]:
    """Entries that cannot be read lie in all directories."""
    kinds = chance.sample(KINDS if crew.trainer.uid else KINDS[:-1], 2)  # root may read all files
    with bad_entries(crew.run.root, kinds, chance.sample(NAMES, 4)):
        yield f"entries that cannot be read ({', '.join(kinds)})"


@contextmanager
def volume_full(crew: Crew, chance: random.Random) -> Iterator[str]:
    inodes = chance.random() < 0.5
    with full(crew.run.root.parent, inodes=inodes):
        yield f"no free {'inodes' if inodes else 'space'}"


@contextmanager
def wrong_clocks(crew: Crew, chance: random.Random) -> Iterator[str]:
    """The time of day stands still or jumps; sometimes the monotonic clock stands still too."""
    wrong = chance.choice([{"stands": True}, {"offset": -1e8}, {"offset": 1e8}, {"monotonic_stands": True}])
    for member in crew.members.values():
        member.control.clock(**wrong)
    yield f"clocks: {wrong}"
    for member in crew.members.values():
        member.control.clock()


@contextmanager
def private_files(crew: Crew, chance: random.Random) -> Iterator[str]:
    """Workers are killed and restarted with a umask that lets only them read their files."""
    for member in crew.workers:
        member.umask = 0o077
    crew.kill(*crew.workers)
    yield "umask 077"
    for member in crew.workers:
        member.umask = 0o022
    crew.kill(*crew.workers)
    permit(crew.run)


def names(members: list[Member]) -> str:
    return " ".join(member.name for member in members)


ATTACKS: dict[str, Attack] = {
    "calls": failing_calls,
    "suspend": suspended,
    "entries": entries,
    "volume": volume_full,
    "clocks": wrong_clocks,
    "owner": private_files,
}

if __name__ == "__main__":
    sys.exit(main())
