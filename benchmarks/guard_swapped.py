"""`plyzero` with a mistake in the trainer: the targets of the value are those of the other player."""

from typing import Any

import trainer.loop
from plyzero.commands.cli import main
from trainer.targets import Samples, make_samples


def swapped_samples(*arguments: Any, **settings: Any) -> Samples:
    samples = make_samples(*arguments, **settings)
    return samples._replace(wdl=samples.wdl[:, ::-1].copy())


trainer.loop.make_samples = swapped_samples

if __name__ == "__main__":
    main()
