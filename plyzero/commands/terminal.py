"""The terminal interface: play against a bot by typing moves and commands."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from plyzero.commands import common
from plyzero.files import read_file, write_file
from plyzero.lines import MAX_LINE, parse_object
from plyzero.play.found_moves import is_hopeless, move_infos, root_info, within
from plyzero.play.player import Forfeit, Player
from plyzero.play.players import Bot
from plyzero.play.session import SIDES, Session
from plyzero.play.strength import introduction
from plyzero.rules.chance import first_decision
from plyzero.search.numba_kernel import is_plain_python
from plyzero.search.slots import at_intervals
from plyzero.threads import Thread

with suppress(ImportError):  # gives input() arrow keys and a history; some systems lack it
    import readline  # noqa: F401

if TYPE_CHECKING:
    from plyzero.play.judge import Judge
    from plyzero.rules.game import Game, Outcome
    from plyzero.search.slots import SearchResult, SearchSlots

HELP = """Type the name of a move, as listed by `legal`, or a command:
  legal      list the legal moves
  hint       show the best move that the judge finds
  undo       take back your last move and the bot's reply
  thoughts   show or hide the search results of the bot
  resign     resign the game
  accept     accept that the bot resigns, once it offers to
  new        start a new game with sides swapped
  save FILE  save the game to a file
  load FILE  continue a saved game
  quit       quit (also Ctrl-C and Ctrl-D)"""

NO_SEARCH = "This opponent has no search whose results could be shown."


class Terminal:
    """A game between a person who types and a bot: reads commands, shows the board, runs the bot's searches."""

    def __init__(
        self, session: Session, bot: Player, make_judge: Callable[[], Judge], *, about: str | None = None
    ) -> None:
        """Begin with the board of `session`.

        make_judge: called at the first hint.
        about:      a sentence about the bot; None = what is known of its strength.
        """
        self.session, self.bot, self.about = session, bot, about
        self.make_judge = cache(make_judge)
        self.last_search: tuple[Game, SearchResult] | None = None  # the bot's search for its last move
        self.is_outdated = True  # whether the board on the screen is
        self.shows_searches = False
        self.offers_to_resign = False
        self.warming = Thread(self.warm_up, name="warm-up")
        self.console = common.make_console()
        self.commands: dict[str, Callable[[str], None]] = {
            "": lambda _: self.say(HELP),
            "help": lambda _: self.say(HELP),
            "legal": lambda _: self.say(f"Legal: {self.session.position.legal_names() or 'nothing, the game is over'}"),
            "hint": self.hint,
            "undo": self.undo,
            "thoughts": self.toggle_searches,
            "resign": self.resign,
            "accept": self.accept,
            "new": lambda _: self.start(Session(self.session.game, 1 - self.session.person)),
            "save": self.save,
            "load": self.load,
        }

    def run(self) -> None:
        """Play until the person quits."""
        self.begin()
        self.warming.start()
        try:
            while True:
                if self.is_outdated:
                    self.show_board()
                if self.session.outcome is None and not self.session.is_persons_turn:
                    self.answer()
                elif not self.ask():
                    return
        except (EOFError, KeyboardInterrupt):
            self.say("")

    def warm_up(self) -> None:
        """Search once in the background, so that everything is loaded before the bot's first move."""
        with suppress(Exception):  # the bot's first move raises the error again
            # A bot with a clock has searched already; a search in plain Python would slow down its first move.
            if isinstance(self.bot, Bot) and not self.bot.clock and not is_plain_python():
                self.bot.choose(first_decision(self.session.game.start))

    def show_board(self) -> None:
        """Print the set-up, the rolls, the board, what both have so far, the result, and a note if one moves again."""
        session = self.session
        self.is_outdated = False
        setup, rolls = session.setup_and_rolls
        if setup:
            self.say(f"{setup.capitalize()}.")
        if rolls:
            self.say(f"Rolled: {' '.join(rolls)}.")
        self.say(f"\n{session.position}")
        if score := _score(session):
            self.say(score)
        if session.outcome:
            self.say(f"{_result(session, session.outcome)}.")
        elif session.last_mover == session.position.to_play:
            self.say("You move again." if session.is_persons_turn else "The bot moves again.")

    def begin(self) -> None:
        """Print the game, the players and how to get help."""
        self.say(f"{self.session.game.name}: {self.sides()}; the bot is {self.bot.name}.")
        if self.about:
            self.say(self.about)
        elif isinstance(self.bot, Bot):
            self.say(introduction(self.session.game, self.bot.strength().text))
        self.say("Type a move, or help for the list of commands.")

    def ask(self) -> bool:
        """Read a move or a command and carry it out. Return False if the person quits."""
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
        if command and bool(rest) == (word.lower() in ("save", "load")):
            command(rest.strip())
        elif command:
            expected = f"{word} without an argument" if rest else f"{word} FILE, such as {word} game.json"
            self.say(f"Expected {expected}.")
        elif over:
            self.say(f"The game is over: expected {choices}, got {text!r}.")
        else:
            self.say(f"That is neither a legal move nor a command: {refusal}; help lists the commands.")
        return True

    def play(self, action: int) -> None:
        """Play `action` for the player to move."""
        self.session.play(action)
        self.is_outdated = True

    def answer(self) -> None:
        """Search and play the bot's move."""
        position = self.session.position
        if not isinstance(self.bot, Bot):
            (choice,) = self.bot.choices([position], [self.session.moves])
            if isinstance(choice, Forfeit):  # a player that fails to move loses
                self.say(choice.reason)
                if choice.resigned:
                    self.session.resigned = 1 - self.session.person
                else:
                    self.session.forfeited = True
                self.is_outdated = True
            else:
                self.say(f"The bot plays {position.action_name(choice)}.")
                self.play(choice)
            return
        with self.bot.clock.running() if self.bot.clock else nullcontext():
            result = self.search(position, self.bot)
        self.last_search = (position, result)
        action = self.bot.select_action(result)
        has_offered = self.offers_to_resign
        self.offers_to_resign = is_hopeless(result)
        self.say(f"The bot plays {position.action_name(action)}; it expects {_expectation(position, result)}.")
        self.play(action)
        if self.shows_searches:
            self.show_search(position, result)
        if self.offers_to_resign and not has_offered and not self.session.outcome:
            self.say("The bot sees no chance left: accept its resignation with `accept`, or play on.")

    def search(self, position: Game, bot: Bot) -> SearchResult:
        """Return the bot's search result for `position`; show the progress of the search meanwhile."""
        doing = "searching as plain Python" if is_plain_python() else "searching"
        with common.show_progress(doing) as report:

            def show(slots: SearchSlots) -> None:
                best = position.action_name(slots.result(0).best_action())
                report(f"searching: {slots.simulations()} of {slots.budget()} simulations, best move so far {best}")

            return bot.search([position], on_batch=at_intervals(0.1, show))[0]

    def show_search(self, position: Game, result: SearchResult) -> None:
        """Print a table of the best moves of a search."""
        table = common.make_table("move", "visits", "win rate", "prior", "principal variation")
        for info in move_infos(position, result)[:5]:
            winrate = "" if info["winrate"] is None else f"{info['winrate']:.0%}"
            table.add_row(info["move"], str(info["visits"]), winrate, f"{info['prior']:.0%}", " ".join(info["pv"][:8]))
        self.console.print(table)

    def hint(self, _: str) -> None:
        """Print the best move that the judge finds, and the search results."""
        position = self.session.position
        if self.session.outcome:
            self.say("The game is over; there is no move to play.")
            return
        judge = self.make_judge()
        result = self.search(position, judge.bot)
        move, expectation = position.action_name(result.best_action()), _expectation(position, result)
        self.say(f"Hint: {move}; the judge expects {expectation}.")
        self.show_search(position, result)
        self.say(judge.sentence)

    def undo(self, _: str) -> None:
        """Take back a resignation, or the person's last move and all later moves."""
        if self.session.resigned is not None or self.session.undo():
            self.session.resigned = None
            self.offers_to_resign = False
            self.is_outdated = True
        else:
            self.say("You have not moved yet; there is nothing to take back.")

    def toggle_searches(self, _: str) -> None:
        """Start or stop showing the search results of the bot after each of its moves."""
        if not isinstance(self.bot, Bot):
            self.say(NO_SEARCH)
            return
        self.shows_searches = not self.shows_searches
        if not self.shows_searches:
            self.say("The bot's search results are no longer shown.")
        elif self.last_search:
            self.say("Search results before the bot's last move, shown with every move from now on:")
            self.show_search(*self.last_search)
        else:
            self.say("The bot's search results are shown from now on.")

    def resign(self, _: str) -> None:
        """Resign the game."""
        if self.session.outcome:
            self.say("The game is over already.")
        else:
            self.session.resigned = self.session.person
            self.is_outdated = True

    def accept(self, _: str) -> None:
        """Accept the bot's resignation."""
        if self.session.outcome or not self.offers_to_resign:
            self.say("The bot has not offered to resign.")
        else:
            self.session.resigned = 1 - self.session.person
            self.is_outdated = True

    def save(self, file: str) -> None:
        """Write the record of the game to a new file."""
        content = json.dumps(self.session.record(self.bot.name), indent=1).encode()
        try:
            if not Path(file).parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, "there is no such directory")
            write_file(Path(file), content + b"\n")
            self.say(f"Saved to {file}.")
        except FileExistsError:
            self.say(f"{file} exists already and was not changed; choose another name.")
        except OSError as error:
            self.say(f"Cannot write {file}: {error.strerror}.")

    def load(self, file: str) -> None:
        """Continue the game recorded in a file."""
        try:
            record = parse_object(read_file(Path(file), max_bytes=MAX_LINE))
            self.start(Session.from_record(self.session.game, record))
        except OSError as error:
            self.say(f"Cannot read {file}: {error.strerror}. The current game goes on.")
        except ValueError as error:
            self.say(f"Cannot load {file}: {error}. The current game goes on.")

    def start(self, session: Session) -> None:
        """Replace the current game by `session`."""
        self.session = session
        self.last_search = None
        self.is_outdated = True
        self.offers_to_resign = False
        self.bot.begin_game()
        sides = self.sides()
        self.say(f"{sides[0].upper()}{sides[1:]}.")

    def sides(self) -> str:
        """Return the side of the person, and who begins if dice have chosen the second player."""
        side, first = SIDES[self.session.person], self.session.first_mover
        who = "you move" if first == self.session.person else "the bot moves"
        return f"you are the {side} player, and {who} first" if first else f"you move {side}"

    def say(self, text: str) -> None:
        """Print `text` without markup. On a terminal, long lines are wrapped between words."""
        self.console.print(text, soft_wrap=not self.console.is_terminal)


def _score(session: Session) -> str:
    """Return what both players have so far in words; "" if the game does not say."""
    texts = session.position.scoreboard()
    beside = (("You", texts[session.person]), ("The bot", texts[1 - session.person]))
    return ". ".join(f"{name}: {text}" for name, text in beside if text)


def _result(session: Session, outcome: Outcome) -> str:
    """Return the result of a finished game in words."""
    verdict = {1: "You win", 0: "A draw", -1: "The bot wins"}[outcome.value(session.person)]
    if session.resigned is not None:
        verdict += " by resignation"
    elif session.forfeited:
        verdict += " by forfeit"
    lead = abs(outcome.lead(0))
    if not lead:
        return verdict
    points = "1 point" if lead == 1 else f"{lead:g} points"
    return f"{verdict} by {points}"


def _expectation(position: Game, result: SearchResult) -> str:
    """Return the expected result of the best move in words, with the same win rate as in the table."""
    root, best = root_info(position, result), move_infos(position, result)[0]
    if root["proven"]:
        words = {"win": "a certain win", "draw": "a certain draw", "loss": "a loss against best play"}[root["proven"]]
        return words + within(root["pliesToEnd"])
    winrate = root["winrate"] if best["winrate"] is None else best["winrate"]
    draws = f" (a draw counts half; draws: {root['drawrate']:.0%})" if root["drawrate"] >= 0.005 else ""
    expected = f"a score of {winrate:.0%}{draws}"
    lead = root.get("scoreLead")
    if lead is None:
        return expected
    points = f"{abs(lead):.1f}"
    if points == "0.0":
        return f"{expected} and to be level"
    return f"{expected} and to {'lead' if lead > 0 else 'trail'} by {points} points"
