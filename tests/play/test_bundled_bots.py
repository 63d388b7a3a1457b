"""The bundled bots: small files, model cards with correct scores, and levels of increasing strength."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.strength import exams
from benchmarks.strength.exams import find_exam
from benchmarks.strength.score import network_scores
from plyzero.errors import UserError
from plyzero.network.model_loader import load_network
from plyzero.play.bundled_bots import find_card, list_cards
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import installed_games, load_game
from plyzero.rules.chance import first_decision
from tests.helpers.cli import plyzero

CARDS = {card.game.rpartition(" v")[0]: card for card in list_cards()}
GAMES = [*CARDS]


@pytest.mark.parametrize("name", [*sorted(installed_games()), "othello(size=6)"])
def test_a_bot_comes_along_for_each_included_game(name: str):
    assert Bot.at_level(load_game(name)).strength().text.startswith("the bundled bot, level ")


def test_bots_are_small():
    assert sum(card.network.stat().st_size for card in CARDS.values()) < 14_000_000


@pytest.mark.parametrize("name", GAMES)
def test_a_card_tells_how_its_bot_was_made_and_how_strong_it_is(name: str):
    card = CARDS[name]
    assert find_card(load_game(name)) == card
    assert card.network.exists()
    assert {"command", "hardware", "minutes", "seed", "options", "exams"} <= card.training.keys()
    for score in card.training["exams"].values():
        share, low, high = map(float, re.findall(r"[\d.]+", score))
        assert low <= share <= high
    assert all(one.elo <= other.elo for one, other in pairwise(card.levels))
    assert all(level.low <= level.elo <= level.high for level in card.levels)
    assert [level.number for level in card.levels] == list(range(1, len(card.levels) + 1))


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if card.training["exams"]])
def test_a_raw_network_does_in_its_exams_what_its_card_says(name: str):
    game, card = load_game(name), CARDS[name]
    network = load_network(card.network, game)
    asked = {exam: score for exam, score in card.training["exams"].items() if exam.endswith(", 0 simulations")}
    assert asked
    for about, score in asked.items():
        file = about.partition(",")[0]
        exam = find_exam(file if file == "all" else str(Path(exams.__file__).parent / file), game)
        found = network_scores(network, exam, 0)["best moves"]["all"]["mean"]
        assert found == pytest.approx(float(score.partition(" ")[0]), abs=0.003)


@pytest.mark.parametrize("name", GAMES)
def test_every_level_plays_legal_moves(name: str):
    game = load_game(name)
    for level in CARDS[name].levels:
        bot = Bot.at_level(game, level.number)
        start = first_decision(game.start)
        assert bot.choose(start) in start.legal_actions()
        assert str(level) in bot.name


def test_a_weak_level_varies_and_a_strong_one_does_not():
    game = load_game("connect-four")
    weak, strong = Bot.at_level(game, 1), Bot.at_level(game)
    assert len({weak.choose(game.start) for _ in range(30)}) > 1
    assert len({strong.choose(game.start) for _ in range(3)}) == 1


@pytest.mark.parametrize("name", ["hex(size=5)", "gomoku(size=7)", "gomoku(size=7,exactly_five=True)", "go(size=5)"])
def test_a_bot_whose_network_fits_every_size_plays_them_and_says_where_it_was_measured(name: str):
    bot = Bot.at_level(load_game(name))
    assert bot.choose(bot.game.start) in bot.game.start.legal_actions()
    text, judges = bot.strength()
    assert re.search(r", measured on (\d+) x \1$", text)
    assert not judges
    assert ", measured on " in bot.name


def test_a_bot_does_not_play_a_game_with_other_planes_or_another_score():
    assert find_card(load_game("hex(size=5, swap=False)")) is None
    assert find_card(load_game("go(komi=6.5)")) is None


def test_a_level_or_a_bot_that_is_not_there_is_refused():
    game = load_game("connect-four")
    with pytest.raises(UserError, match="expected a level from 1 to"):
        Bot.at_level(game, 99)
    with pytest.raises(UserError, match="there is no bundled bot for breakthrough\\(size=6\\) v"):
        Bot.at_level(load_game("breakthrough(size=6)"))
    with pytest.raises(UserError, match="expected bot or bot:LEVEL"):
        find_player("bot:x", game, np.random.default_rng(0))
    assert "level 2" in find_player("bot:2", game, np.random.default_rng(0)).name


def test_the_bots_are_listed_with_their_strength():
    listed = plyzero("games").stdout
    assert all(card.game in listed for card in list_cards())


def test_play_needs_no_training():
    played = plyzero("play", "connect-four", "--level", "1", text="4\nquit\n")
    assert "bundled bot, level 1" in played.stdout
    assert "The bot plays" in played.stdout
