"""The advice of `bench` follows from its measurement."""

from pathlib import Path

import pytest

from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.commands.bottleneck import FASTER, README, compare, first_change
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.selfplay.benchmark import RULES

ROOT = Path(__file__).resolve().parents[2]
PLAIN, COMPILED = GameSpec("mine:Mine", TicTacToe()), load_game("tic-tac-toe")


def shares(network: float, rules: float, search: float) -> dict[str, float]:
    return {"network": network, "search": search, "rules": rules, "record": 0.01, "other": 0.02}


def test_rules_that_take_most_of_the_time_are_to_be_changed_first():
    found = first_change(PLAIN, shares(0.23, 0.60, 0.14), {"legal_actions": 0.5, "play": 0.05})
    assert found == (
        "The rules take 60% of the time, legal_actions alone 50%. Change it first. Test all squares at once, or let "
        "play keep what is legal: without the cost of legal_actions there would be 2.0 times as many positions. "
        "Compiled rules would give up to 2.5 times as many positions: plyzero new NAME --from mine:Mine --compiled."
    )
    unknown = first_change(PLAIN, shares(0.23, 0.60, 0.14), {})
    assert unknown == "The rules take 60% of the time. Compiled rules would give up to 2.5 times as many positions."


@pytest.mark.parametrize("rules", [{"legal_actions": 0.05}, {}])
def test_a_network_that_takes_most_of_the_time_means_that_the_rules_are_fast_enough(rules: dict[str, float]):
    found = first_change(PLAIN if rules else COMPILED, shares(0.8, 0.1 if rules else 0.0, 0.1), rules)
    assert found.startswith("The network takes 80% of the time, so the rules are fast enough: if all else cost nothing")
    assert "there would be 1.2 times as many positions" in found
    through = first_change(PLAIN, shares(0.8, 0.1, 0.1), {"play": 0.1}, evaluator=True)
    assert through.startswith("The evaluator takes 80%")


def test_a_search_that_takes_most_of_the_time_may_be_its_compiled_rules():
    found = first_change(COMPILED, shares(0.2, 0.0, 0.75), {})
    assert found.startswith("The search, with the compiled rules in it, takes 75% of the time")
    assert "there would be 4.0 times as many positions" in found


def test_where_nothing_dominates_it_is_said_so():
    found = first_change(PLAIN, shares(0.35, 0.4, 0.22), {"play": 0.2, "observe": 0.1})
    assert found.startswith("No part takes half of the time: rules 40%, network 35%, search 22%. The rules take 40%")
    assert "without the cost of play there would be 1.2 times" in found
    assert "up to 1.7 times" in found


def test_each_rule_that_is_timed_has_advice():
    assert FASTER.keys() == RULES.keys()


def test_a_machine_is_compared_with_the_one_of_the_tables():
    half = compare(README.per_second / 2, cores=8, has_8_bit=True)
    assert "one core of this machine makes 5,026 evaluations/s, that of README's tables 10,053 (AMD EPYC): 0.50" in half
    assert half.endswith("README's runs had 2 cores, this machine has 8.")
    assert "This processor has no VNNI" in compare(1.0, cores=1, has_8_bit=False)


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_documents_have_the_figure_of_the_machine_of_the_tables(page: str):
    text = " ".join((ROOT / page).read_text().split())
    assert README.processor in text
    assert f"{README.per_second:,.0f} evaluations/s" in text
