"""Pig, a game with one die: roll as often as you dare, but a one takes back the whole turn."""

import numpy as np

from plyzero.rules.board import Board, Cell, Label
from plyzero.rules.compiled_game import CompiledGame, Record
from plyzero.rules.game import ONGOING

HOLD, ROLL = 0, 1

STEPS = 10
"""Number of steps to the goal on the board that people see."""


class Pig(CompiledGame, version=1):
    """Roll a die and add up, or hold to keep the sum; a one loses the turn. First to 100 wins, or to `pig(goal=50)`."""

    rules_text = """Roll the die as often as you like: what it shows is added to the sum of this turn. A one loses the
    sum and the turn; to hold adds the sum to your score and ends the turn. Who reaches the goal first wins; the sum
    of the turn counts."""

    State = np.dtype([("goal", "i2"), ("scores", "i2", (2,)), ("turn", "i2"), ("is_rolling", "i1"), ("to_play", "i1")])
    num_actions, num_chances = 2, 6
    action_names, roll_names = ("hold", "roll"), "123456"
    observation_dtype = bool

    def __init__(self, goal: int = 100) -> None:
        if not 2 <= goal <= 1000:
            raise ValueError(f"expected a goal from 2 to 1000, got {goal!r}")
        self.observation_shape = (3 * goal, 1, 1)
        self.max_plies = 10 * goal  # turns without a point can go on for ever, but hardly do
        super().__init__()
        self.record["goal"] = goal

    def legal(s: Record, mask: Record) -> None:
        mask[HOLD] = s["turn"] > 0
        mask[ROLL] = True

    def chances(s: Record, weights: Record) -> None:
        if s["is_rolling"]:
            weights[:] = 1 / 6

    def play(s: Record, action: int) -> None:
        if s["is_rolling"]:
            s["is_rolling"] = 0
            if action:
                s["turn"] += action + 1
            else:  # a one
                s["turn"] = 0
        elif action == ROLL:
            s["is_rolling"] = 1
            return
        else:
            s["scores"][s["to_play"]] += s["turn"]
            s["turn"] = 0
        if s["turn"] == 0:
            s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        return s["to_play"] if s["scores"][s["to_play"]] + s["turn"] >= s["goal"] else ONGOING

    def observe(s: Record, planes: Record) -> None:
        goal = s["goal"]
        planes[: s["scores"][s["to_play"]], 0, 0] = 1
        planes[goal : goal + s["scores"][1 - s["to_play"]], 0, 0] = 1
        planes[2 * goal : 2 * goal + s["turn"], 0, 0] = 1

    def render(self) -> Board:
        """Return a track for each player, with a stone at the score and one at what it would be after a hold."""
        s = self.record
        cells, labels = [], []
        for player in (0, 1):
            score = int(s["scores"][player])
            turn = int(s["turn"]) if player == s["to_play"] else 0
            pieces = {self._step(score): f"{player}:{score}"}
            if turn:
                is_near = self._step(score + turn) == self._step(score)
                pieces[self._step(score + turn)] = f"{player}:{score}+{turn}" if is_near else f"{player}:+{turn}"
            for step in range(STEPS + 1):
                y = 3 * (1 - player)  # player 0 below, as on other boards
                cells.append(Cell(f"{player + 1}-{step}", step, y, pieces.get(step, "")))
                if step % 2 == 0:
                    labels.append(Label(step, y - 1, str(step * int(s["goal"]) // STEPS)))
        for name, x in (("roll", STEPS / 2 - 1.5), ("hold", STEPS / 2 + 1.5)):
            cells.append(Cell(name, x, 5, name, "card"))
        return Board(tuple(cells), labels=tuple(labels))

    def _step(self, points: int) -> int:
        return min(STEPS, points * STEPS // int(self.record["goal"]))

    def scoreboard(self) -> tuple[str, str]:
        """Return the scores, and the sum of this turn."""
        s = self.record
        texts = [f"{score} of {s['goal']}" for score in s["scores"]]
        if s["turn"]:
            texts[s["to_play"]] += f", {s['turn']} in this turn"
        return texts[0], texts[1]

    def __str__(self) -> str:
        s = self.record
        return f"{s['scores'][0]} : {s['scores'][1]}, player {s['to_play']} has {s['turn']} in this turn"
