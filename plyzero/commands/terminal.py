"""A game against the bot in a terminal."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from plyzero.files import write_file
from plyzero.play.analysis import move_infos, root_info
from plyzero.play.session import SIDES, Session

with suppress(ImportError):  # input() then has arrow keys and a history; not on every system
    import readline  # noqa: F401

if TYPE_CHECKING:
    from plyzero.play.players import Bot
    from plyzero.rules.game import Game
    from plyzero.search.slots import SearchResult, SearchSlots

HELP = """A move is its name, as `legal` lists them. Besides:
  legal      all legal moves
  hint       what the bot would play in your place, and why
  undo       take back your last move and the bot's answer
  thoughts   show, or stop showing, what the bot sees: visits, win rate, prior, line
  resign     give the game up
  new        a new game with sides swapped
  save FILE  write the game down
  load FILE  go on with a game that was saved
  quit       leave (so do Ctrl-C and Ctrl-D)"""

WITH_FILE = ("save", "load")

SHOWN_MOVES = 5
"""Of the bot's thoughts, the best."""


class Terminal:
    """Asks the person, shows the board, and lets the bot think."""

    def __init__(self, session: Session, bot: Bot) -> None:
        self.session, self.bot = session, bot
        self.thoughts: tuple[Game, SearchResult] | None = None
        self.changed = True
        self.shows_thoughts = False
        self.console = Console(highlight=False)
        self.commands: dict[str, Callable[[str], None]] = {
            "": lambda _: self.say(HELP),
            "help": lambda _: self.say(HELP),
            "legal": lambda _: self.say(f"Legal: {self.session.position.legal_names() or 'nothing, the game is over'}"),
            "hint": self.hint,
            "undo": self.undo,
            "thoughts": self.toggle_thoughts,
            "resign": self.resign,
            "new": self.rematch,
            "save": self.save,
            "load": self.load,
        }

    def run(self) -> None:
        """Play until the person leaves."""
        self.begin()
        warming = threading.Thread(target=self.warm_up, name="warm-up")
        warming.start()
        try:
            while True:
                if self.changed:
                    self.draw()
                if self.session.outcome is None and not self.session.persons_turn:
                    self.answer()
                elif not self.ask():
                    return
        except (EOFError, KeyboardInterrupt):
            self.say("")
        finally:
            warming.join()  # a thread that outlives the interpreter aborts it

    def warm_up(self) -> None:
        """Let the bot move once beside the game, so that all is compiled while the person thinks."""
        with suppress(Exception):  # the bot's real move will say what is wrong
            self.bot.choose(self.session.game.start)

    def draw(self) -> None:
        """Show the board, and what a person may miss in it."""
        session, self.changed = self.session, False
        self.say(f"\n{session.position}")
        if session.outcome:
            how = " by resignation" if session.resigned else ""
            verdict = {1: "You win", 0: "A draw", -1: "The bot wins"}[session.outcome.value(session.person)]
            self.say(f"{verdict}{how}.")
        elif session.moves and session.positions[-2].to_play == session.position.to_play:
            self.say("You move again." if session.persons_turn else "The bot moves again.")

    def begin(self) -> None:
        """Say who plays whom."""
        self.say(f"{self.session.game.name}: you move {SIDES[self.session.person]}; the bot is {self.bot.name}.")
        self.say("Type a move, or help for what else there is.")

    def ask(self) -> bool:
        """Carry out what the person types; False to leave."""
        over = self.session.outcome is not None
        choices = "new, undo, save FILE, load FILE or quit"
        text = input(f"{choices}: " if over else "Your move: ").strip()
        if not over:
            try:
                self.play(self.session.position.parse_action(text))
                return True
            except ValueError as error:
                refusal = error
        word, _, rest = text.partition(" ")
        if text.lower() in ("quit", "exit", "q"):
            return False
        command = self.commands.get(word.lower())
        if command and bool(rest) == (word.lower() in WITH_FILE):
            command(rest.strip())
        elif command:
            self.say(f"Expected {word} alone." if rest else f"Expected {word} FILE, such as {word} game.json.")
        elif over:
            self.say(f"The game is over: expected {choices}, got {text!r}.")
        else:
            self.say(f"That is neither a legal move nor a command: {refusal}; help lists the commands.")
        return True

    def play(self, action: int) -> None:
        """Play for whoever is to move."""
        self.session.play(action)
        self.changed = True

    def answer(self) -> None:
        """Let the bot move."""
        position = self.session.position
        root = self.think(position)
        self.thoughts = (position, root)
        action = self.bot.pick(root)
        self.say(f"The bot plays {position.action_name(action)}; it expects {_expectation(position, root)}.")
        self.play(action)
        if self.shows_thoughts:
            self.show(position, root)

    def think(self, position: Game) -> SearchResult:
        """Search, and show how far the search is."""
        with self.console.status("the bot starts to think") as status:
            due = time.monotonic()

            def watch(slots: SearchSlots) -> None:
                nonlocal due
                done = slots.simulations()
                if done and time.monotonic() >= due:
                    favourite = position.action_name(slots.root(0).best_action())
                    text = f"the bot thinks: {done} of {self.bot.simulations} simulations, likes {favourite}"
                    status.update(text[: self.console.width - 4])  # what is broken into two lines is not wiped away
                    due = time.monotonic() + 0.1

            return self.bot.think([position], watch=watch)[0]

    def show(self, position: Game, root: SearchResult) -> None:
        """Print a table of the best moves."""
        table = Table("move", "visits", "win rate", "prior", "expected line", box=None)
        for info in move_infos(position, root)[:SHOWN_MOVES]:
            winrate = "" if info["winrate"] is None else f"{info['winrate']:.0%}"
            table.add_row(info["move"], str(info["visits"]), winrate, f"{info['prior']:.0%}", " ".join(info["pv"][:8]))
        self.console.print(table)

    def hint(self, _: str) -> None:
        """Show what the bot would do."""
        position = self.session.position
        if self.session.outcome:
            self.say("The game is over; there is nothing to play.")
            return
        root = self.think(position)
        move, expectation = position.action_name(root.best_action()), _expectation(position, root)
        self.say(f"In your place the bot would play {move}; it expects {expectation}.")
        self.show(position, root)

    def undo(self, _: str) -> None:
        """Go back to the person's last turn, or from a resignation into the game."""
        if self.session.resigned:
            self.session.resigned = False
            self.changed = True
        elif self.session.undo():
            self.changed = True
        else:
            self.say("You have not moved yet; there is nothing to take back.")

    def toggle_thoughts(self, _: str) -> None:
        """Show the bot's thoughts from now on, or no more."""
        self.shows_thoughts = not self.shows_thoughts
        if not self.shows_thoughts:
            self.say("The bot keeps its thoughts to itself again.")
        elif self.thoughts:
            self.say("Before its last move the bot saw (and it will show this from now on):")
            self.show(*self.thoughts)
        else:
            self.say("From now on the bot shows what it sees.")

    def resign(self, _: str) -> None:
        """Give up."""
        if self.session.outcome:
            self.say("The game is over already.")
        else:
            self.session.resigned = self.changed = True

    def rematch(self, _: str) -> None:
        """Start again with the sides swapped."""
        self.start(self.session.rematch())

    def save(self, file: str) -> None:
        """Write the game down."""
        content = json.dumps(self.session.record(self.bot.name), indent=1).encode()
        try:
            if not Path(file).parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, "there is no such folder")
            write_file(Path(file), content + b"\n")
            self.say(f"Saved to {file}.")
        except FileExistsError:
            self.say(f"{file} exists already and stays as it is; give another name.")
        except OSError as error:
            self.say(f"Cannot write {file}: {error.strerror}.")

    def load(self, file: str) -> None:
        """Go on with a game that was saved."""
        try:
            self.start(Session.from_record(self.session.game, json.loads(Path(file).read_text())))
        except OSError as error:
            self.say(f"Cannot read {file}: {error.strerror}. The game goes on.")
        except (json.JSONDecodeError, UnicodeDecodeError):
            self.say(f"Cannot load {file}: it is not a game that was saved. The game goes on.")
        except ValueError as error:
            self.say(f"Cannot load {file}: {error}. The game goes on.")

    def start(self, session: Session) -> None:
        """Turn to another game."""
        self.session, self.thoughts, self.changed = session, None, True
        self.say(f"You move {SIDES[session.person]}.")

    def say(self, text: str) -> None:
        """Print plain text, in lines that break between words where a person reads them."""
        self.console.print(text, markup=False, soft_wrap=not self.console.is_terminal)


def _expectation(position: Game, root: SearchResult) -> str:
    """Say what the search expects of its move, with the same win rate as in the table."""
    found, best = root_info(position, root), move_infos(position, root)[0]
    if found["proven"]:
        return {"win": "a certain win", "draw": "a certain draw", "loss": "a loss against best play"}[found["proven"]]
    winrate = found["winrate"] if best["winrate"] is None else best["winrate"]
    drawn = f" (draws, {found['drawrate']:.0%}, count half)" if found["drawrate"] >= 0.005 else ""
    return f"a win rate of {winrate:.0%}{drawn}"
