"""Included games with a convolutional policy head."""

from games.go import Go
from games.hex import Hex
from games.othello import Othello


class PlanesOthello(Othello):
    def __init__(self, size: int = 8) -> None:
        super().__init__(size=size)
        self.policy_planes = 1


class PlanesGo(Go):
    def __init__(self, size: int = 9, komi: float = 7.5) -> None:
        super().__init__(size=size, komi=komi)
        self.policy_planes = 1


class PlanesHex(Hex):
    def __init__(self, size: int = 11, swap: bool = True) -> None:
        super().__init__(size=size, swap=swap)
        self.policy_planes = 1
