"""Memory of the trainer's window and the time to sample a batch, for positions of a board and rules that are made up.

python benchmarks/window.py --planes 17 --size 19 --actions 362 --legal 210 --positions 100000
"""

import argparse
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np

from trainer.targets import Samples
from trainer.window import Window

SEGMENT = 200
"""Positions of a segment."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planes", type=int, default=17)
    parser.add_argument("--size", type=int, default=19)
    parser.add_argument("--actions", type=int, default=362)
    parser.add_argument("--legal", type=int, default=210, help="legal actions of a position on average")
    parser.add_argument("--positions", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=256)
    given = parser.parse_args()
    shape = (given.planes, given.size, given.size)
    game = SimpleNamespace(
        observation_shape=shape, observation_dtype=bool, num_actions=given.actions, symmetries=lambda: ()
    )
    rng, window = np.random.default_rng(0), Window(game)  # type: ignore[arg-type]
    tracemalloc.start()
    for number in range(given.positions * 3 // 2 // SEGMENT):  # half of them leave the window again
        samples = random_samples(rng, num_bytes=-(-int(np.prod(shape)) // 8), actions=given.actions, legal=given.legal)
        window.add(str(number), samples, size=given.positions)
    kept, most = (memory / 1e6 for memory in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    seconds = []
    for _ in range(50):
        began = time.perf_counter()
        window.sample(given.batch, rng)
        seconds.append(time.perf_counter() - began)
    print(
        f"{len(window)} positions: {kept:.0f} MB, at most {most:.0f} MB; "
        f"{1000 * np.median(seconds):.1f} ms for a batch of {given.batch}"
    )


def random_samples(rng: np.random.Generator, *, num_bytes: int, actions: int, legal: int) -> Samples:
    """Return a segment's samples: random bits, and between half and one and a half times `legal` legal actions."""
    num_legal = rng.integers(legal // 2, min(actions, legal * 3 // 2) + 1, SEGMENT)
    is_legal = rng.random((SEGMENT, actions)).argsort(axis=1) < num_legal[:, np.newaxis]
    policy = rng.random(int(num_legal.sum()), np.float32)
    return Samples(
        observations=rng.integers(0, 256, (SEGMENT, num_bytes), np.uint8),
        wdl=np.full((SEGMENT, 3), 1 / 3, np.float32),
        num_legal=num_legal,
        actions=np.nonzero(is_legal)[1],
        probabilities=policy / np.repeat(np.add.reduceat(policy, np.cumsum(num_legal) - num_legal), num_legal),
    )


if __name__ == "__main__":
    main()
