"""Backgammon, one die at a time, without the doubling cube."""

import numpy as np

from plyzero.rules.board import Board, Cell, Label
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import ONGOING

# Each player has 26 places of their own: 0 = borne off, the points 1 to 24 as they number them, and 25 = the bar. So
# both move downwards, and point p of one player is point 25 - p of the other one.
OFF, HOME, BAR = 0, 6, 25
PLACES, CHECKERS = 26, 15

PASS = 6 * BAR
"""The last action. Those before it, 6 * (place - 1) + number - 1, move a checker from a place by a number thrown."""

THROWS = np.array([(a, b) for a in range(6, 0, -1) for b in range(a - 1, 0, -1)] + [(a, a) for a in range(6, 0, -1)])
"""The two numbers of each roll. From roll DOUBLES on they are equal, which the opening roll is never."""

DOUBLES = 15

# The rows of the board that people see.
UPPER, LOWER, ROWS = 0, 10, 5
DICE = str.maketrans("123456", "⚀⚁⚂⚃⚄⚅")

# The observation of a place: at least one, two, three checkers, then in binary how many more.
STEPS, BITS = 3, 4
SEEN = STEPS + BITS


def move_name(place: int, number: int) -> str:
    """Return the usual notation for the move of a checker from a place by a number thrown: 13/7, bar/22, 6/off.

    A number that is larger than needed is added, as in 5/off(6): 5/off is another move.
    """
    source = "bar" if place == BAR else str(place)
    if place > number:
        return f"{source}/{place - number}"
    return f"{source}/off" if place == number else f"{source}/off({number})"


class Backgammon(CompiledGame, version=1):
    """Bear off all checkers before the opponent does, without the cube. A gammon is 2 points, a backgammon 3.

    Points are 1 for a win, 2 for a gammon (the loser has borne off no checker) and 3 for a backgammon (one of them is
    on the bar or in the winner's home board); they count as far as `search.score_weight` says.

    Player 0 is who won the opening roll, which is therefore no double.
    """

    rules_text = """Both players move 15 checkers around the board into their home, the points 1 to 6, and then off
    it. Points are numbered for the player to move, who moves from high to low numbers by each of the two dice, four
    times after a double. Both dice are played if that is possible, otherwise the larger one. A checker may not go to
    a point with two or more of the opponent's; a single one there is hit, and enters again from the bar before
    anything else. Who has all checkers at home may bear off. Who has borne off all of them first wins: a gammon if
    the opponent has borne off none, a backgammon if one is still on the bar or in the winner's home. There is no
    cube."""

    # `dice` is how often each number from 1 to 6 is still to be played; none = the dice have to be thrown.
    State = np.dtype([("checkers", "i1", (2, PLACES)), ("dice", "i1", (7,)), ("is_opening", "i1"), ("to_play", "i1")])
    num_actions, num_chances = PASS + 1, len(THROWS)
    action_names = (*(move_name(place, number) for place in range(1, BAR + 1) for number in range(1, 7)), "pass")
    roll_names = tuple(f"{high}-{low}" for high, low in THROWS)
    observation_shape = (2 * PLACES * SEEN + 24, 1, 1)
    observation_dtype = bool
    max_plies = 1000  # the longest of 20,000 random games had 838
    max_score = 3
    points_count = True

    def start(s: Record) -> None:
        for player in range(2):
            for point, count in ((24, 2), (13, 5), (8, 3), (6, 5)):
                s["checkers"][player, point] = count
        s["is_opening"] = 1

    def legal(s: Record, mask: Record) -> None:
        own, other = s["checkers"][s["to_play"]].copy(), s["checkers"][1 - s["to_play"]]
        best = 0
        for number in range(1, 7):
            if s["dice"][number]:
                for place in range(1, BAR + 1):
                    if can_move(own, other, place, number):
                        # Both numbers must be played if possible, otherwise the larger one. With a double no move
                        # prevents another one.
                        rank = 7 if can_follow(own, other, place, number, second_number(s, number)) else number
                        if rank > best:
                            mask[:] = False
                            best = rank
                        mask[6 * (place - 1) + number - 1] = rank == best
        mask[PASS] = best == 0

    def chances(s: Record, weights: Record) -> None:
        if not s["dice"].any():
            weights[:DOUBLES] = 1 / 15 if s["is_opening"] else 1 / 18
            weights[DOUBLES:] = 0 if s["is_opening"] else 1 / 36

    def play(s: Record, action: int) -> None:
        if not s["dice"].any():
            for number in THROWS[action]:
                s["dice"][number] += 2 if action >= DOUBLES else 1
            s["is_opening"] = 0
            return
        if action == PASS:
            s["dice"][:] = 0
        else:
            move(s, action // 6 + 1, action % 6 + 1)
        if not s["dice"].any():
            s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        for player in range(2):
            if s["checkers"][player, OFF] == CHECKERS:
                return player
        return ONGOING

    def score(s: Record) -> float:
        loser = 1 if s["checkers"][0, OFF] == CHECKERS else 0
        if s["checkers"][loser, OFF]:
            return 1
        return 3 if s["checkers"][loser, PLACES - 1 - HOME :].any() else 2

    def observe(s: Record, planes: Record) -> None:
        for side in range(2):
            for place in range(PLACES):
                count = int(s["checkers"][side ^ s["to_play"], place])
                first = SEEN * (PLACES * side + place)
                for step in range(min(count, STEPS)):
                    planes[first + step, 0, 0] = 1
                if count > STEPS:
                    for bit in range(BITS):
                        planes[first + STEPS + bit, 0, 0] = (count - STEPS) >> bit & 1
        for number in range(1, 7):
            first = SEEN * PLACES * 2 + 4 * (number - 1)
            planes[first : first + int(s["dice"][number]), 0, 0] = 1

    def render(self) -> Board:
        """Return the board: five places a point and on each half of the bar, trays for checkers borne off.

        Points have the numbers of the player to move.
        """
        checkers, dice = self.record["checkers"], self.dice_to_play()
        cells, labels = [], [Label(9.5, 5, dice.translate(DICE))]
        for point in range(1, BAR):  # in the numbers of player 0
            x = (12 - point if point < 13 else point - 13) + (point < 7 or point > 18)
            is_lower = point < 13
            owner = 0 if checkers[0, point] else 1
            count = int(checkers[0, point] or checkers[1, BAR - point])
            name = str(point if self.to_play == 0 else BAR - point)
            labels.append(Label(x, LOWER + 1 if is_lower else UPPER - 1, name))
            cells += stack(name, x, is_lower, owner, count, "spike")
        for player, is_lower in ((0, True), (1, False)):  # their homes
            side = "" if player == self.to_play else "other-"
            cells += stack(f"{side}bar", 6, not is_lower, player, int(checkers[player, BAR]), "rail")
            count, shape = int(checkers[player, OFF]), "tray-up" if is_lower else "tray-down"
            piece = f"{player}:{count}" if count else ""
            cells.append(Cell(f"{side}off", 13.2, LOWER if is_lower else UPPER, piece, shape))
        return Board(tuple(cells), labels=tuple(labels))

    def scoreboard(self) -> tuple[str, str]:
        """Return the pips that the checkers of each player have to go, and how many are on the bar or off."""
        first, second = (self._standing_of(player) for player in (0, 1))
        return first, second

    def _standing_of(self, player: int) -> str:
        checkers = self.record["checkers"][player]
        parts = [f"{int(checkers @ np.arange(len(checkers)))} pips"]
        parts += [f"{checkers[place]} {name}" for place, name in ((BAR, "on the bar"), (OFF, "off")) if checkers[place]]
        return ", ".join(parts)

    def why_illegal(self, action: int) -> str:
        place, number = action // 6 + 1, action % 6 + 1
        own, other = (self.record["checkers"][player] for player in (self.to_play, 1 - self.to_play))
        if own[BAR] and place != BAR:
            return "A checker on the bar has to enter first."
        if not own[place]:
            return f"No checker of yours is on {'the bar' if place == BAR else place}."
        if not self.record["dice"][number]:
            return ""
        if place > number and other[BAR - (place - number)] > 1:
            return f"{place - number} is blocked by two or more checkers."
        if place <= number and own[HOME + 1 :].any():
            return "Checkers are borne off only when all are at home."
        return "It would not leave both dice to be played, or not the larger one."

    def dice_to_play(self) -> str:
        """Return the numbers that are still to be played, "" before the dice are thrown."""
        return " ".join(str(number) for number in range(6, 0, -1) for _ in range(self.record["dice"][number]))

    def __str__(self) -> str:
        s = self.record
        board = s["checkers"][0, 1:BAR] - s["checkers"][1, 1:BAR][::-1]  # positive for x, negative for o
        numbers = np.arange(1, 25) if self.to_play == 0 else np.arange(24, 0, -1)
        upper = [" ".join(f"{number:2d}" for number in numbers[12:])]
        upper += [" ".join(f"{cell(int(count), row):>2}" for count in board[12:]) for row in range(5)]
        lower = [" ".join(f"{number:2d}" for number in numbers[11::-1])]
        lower += [" ".join(f"{cell(int(count), row):>2}" for count in board[11::-1]) for row in range(5)]
        lines = [f" {line[:17]} | {line[18:]}".rstrip() for line in (*upper, *lower[::-1])]
        dice = self.dice_to_play()
        turn = f"{'xo'[self.to_play]} to {f'play {dice}' if dice else 'roll'}"
        bar, off = (f"x {s['checkers'][0, place]}, o {s['checkers'][1, place]}" for place in (BAR, OFF))
        lines.append(f"{turn}; bar: {bar}; off: {off}")
        return "\n".join(lines)


def stack(name: str, x: float, is_lower: bool, owner: int, count: int, shape: str) -> list[Cell]:
    """Return the five places of a point, or of half of the bar, with its checkers; the last one has their number."""
    edge, inwards, direction = (LOWER, -1, "up") if is_lower else (UPPER, 1, "down")
    places = []
    for row in range(ROWS):
        piece = str(owner) if row < count else ""
        if row == ROWS - 1 and count > ROWS:
            piece = f"{owner}:{count}"
        places.append(Cell(name, x, edge + inwards * row, piece, "free" if row else f"{shape}-{direction}"))
    return places


def cell(count: int, row: int) -> str:
    """Return the text of a point in one of its rows, 0 at the edge: `count` checkers of x, or -count of o."""
    if row == 4 and abs(count) > 5:
        return str(abs(count))
    if abs(count) > row:
        return "x" if count > 0 else "o"
    return "." if row == 0 else ""


@kernel
def can_move(own: Record, other: Record, place: int, number: int) -> bool:
    """Return whether a checker of `own`, `[26]`, can move from a place by a number, whatever can be played after it."""
    if own[place] == 0 or (own[BAR] and place != BAR):
        return False
    if place > number:
        return other[BAR - (place - number)] < 2
    # Bearing off: all checkers must be at home, and a larger number than needed moves the last ones only.
    first = HOME + 1 if place == number else place + 1
    return not own[first:].any()


@kernel
def can_follow(own: Record, other: Record, place: int, number: int, second: int) -> bool:
    """Return whether `second` can be played after a move; 0 cannot. `own` is changed, and changed back."""
    if second == 0:
        return False
    target = max(place - number, OFF)
    own[place] -= 1
    own[target] += 1
    found = False
    for source in range(1, BAR + 1):
        found = found or can_move(own, other, source, second)
    own[place] += 1
    own[target] -= 1
    return found


@kernel
def second_number(s: Record, number: int) -> int:
    """Return the number that is to be played besides `number`, 0 if there is none or the roll is a double."""
    for second in range(1, 7):
        if s["dice"][second] and second != number:
            return second
    return 0


@kernel
def move(s: Record, place: int, number: int) -> None:
    """Move a checker of the player to move, and put a single one of the opponent on the bar if it is hit."""
    own, other = s["checkers"][s["to_play"]], s["checkers"][1 - s["to_play"]]
    target = max(place - number, OFF)
    own[place] -= 1
    own[target] += 1
    s["dice"][number] -= 1
    if target != OFF and other[BAR - target]:
        other[BAR - target] -= 1
        other[BAR] += 1
