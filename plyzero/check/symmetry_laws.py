"""The laws of symmetries: they form a group, and the rules agree with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from plyzero.check.laws import Answers, GameTrace, Law, LawBrokenError, expect, register, rule_answers
from plyzero.check.wording import first_difference, name_of, names_of, shown_moves
from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry

SYMMETRY_LAWS: Final[list[Law]] = []
"""The laws that are checked at every position, after those of plyzero.check.laws."""


@register(SYMMETRY_LAWS)
def symmetries_are_a_group(trace: GameTrace) -> None:
    """Symmetries are permutations, none of them is the identity, and together with the identity they form a group."""
    if trace.moves:
        return
    position, declared = trace.position, trace.symmetries
    sizes = {"planes": int(np.prod(position.observation_shape)), "actions": position.num_actions}
    for number, symmetry in enumerate(declared):
        for part, size in sizes.items():
            images = np.ravel(getattr(symmetry, part)).tolist()
            if sorted(images) != list(range(size)):
                name = described(position, number, symmetry)
                raise LawBrokenError(
                    f"the {part} of {name} are not a permutation of the numbers 0 to {size - 1}: "
                    f"there are {len(images)} numbers, {len(set(images))} of them different"
                )
    group = {(tuple(range(sizes["planes"])), tuple(range(sizes["actions"]))): "the identity"}
    for number, symmetry in enumerate(declared):
        each = (tuple(map(int, symmetry.planes)), tuple(map(int, symmetry.actions)))
        name = described(position, number, symmetry)
        expect(each not in group, f"{name} is the same as {group.get(each)}")
        group[each] = name
    for (planes_1, moved_1), (planes_2, moved_2) in itertools.product(group, repeat=2):
        both = (tuple(planes_1[i] for i in planes_2), tuple(moved_2[a] for a in moved_1))
        one, other = group[planes_1, moved_1], group[planes_2, moved_2]
        expect(
            both in group,
            f"{one}, followed by {'itself' if one == other else other}, is a symmetry that symmetries() does not have: "
            "add it, or correct what is there",
        )


@register(SYMMETRY_LAWS)
def symmetries_agree_with_the_rules(trace: GameTrace) -> None:
    """If a symmetry maps all moves, the result is the mapped position: same outcome, mapped legal actions."""
    start = trace.positions[0]
    if trace.position.awaits_setup:
        return
    for number, symmetry in trace.tested_symmetries:
        images = [  # a symmetry leaves the rolls as they are
            move if "chances()" in before else int(symmetry.actions[move])
            for before, move in zip(trace.answers, trace.moves, strict=False)
        ]
        if start.awaits_setup:
            setup = trace.image_of_setup(symmetry)
            if setup is None:
                continue
            images[0] = setup
        try:
            reached = trace.replica(number, lambda: start, images)
        except (Exception, SystemExit) as error:
            error.add_note(f"while playing the image of the moves under {described(start, number, symmetry)}")
            raise
        if found := "; ".join(disagreements(trace.answers[-1], reached, symmetry)):
            shown = shown_moves(names_of(trace.replicas[number], images), "none")
            raise LawBrokenError(
                f"{described(start, number, symmetry)} maps the moves below to: {shown}. These lead to a position that "
                f"is not the image of the position below, so the symmetry, a rule or observe() is wrong: {found}"
            )


def disagreements(here: Answers, reached: Game, symmetry: Symmetry) -> Iterator[str]:
    """Yield how `reached` differs from the image under `symmetry` of the position that has answered `here`."""
    there = rule_answers(reached)
    for name in ("outcome()", "chances()"):
        if here.get(name) != there.get(name):
            yield f"{name} is {here.get(name)} here and {there.get(name)} there"
    if "chances()" in here or "chances()" in there:
        return
    image = {int(symmetry.actions[a]) for a in cast(tuple[int, ...], here["legal_actions()"])}
    legal = set(cast(tuple[int, ...], there["legal_actions()"]))
    if image != legal:
        only = [
            " ".join(name_of(reached, a) for a in sorted(each)) or "none" for each in (image - legal, legal - image)
        ]
        yield f"images of legal moves that are not legal there: {only[0]}; other moves that are legal there: {only[1]}"
    if here["outcome()"] is not None or there["outcome()"] is not None:
        if "final_board()" in here and "final_board()" in there:
            squares = math.prod(reached.observation_shape[1:])
            one, two = (
                np.frombuffer(cast(bytes, each["final_board()"]), np.float32).reshape(-1, squares)
                for each in (here, there)
            )
            if not np.array_equal(one[:, symmetry.planes[:squares] % squares], two):
                yield "final_board() there is not the image of that here"
        return
    if here["to_play"] != there["to_play"]:
        yield f"to_play is {here['to_play']} here and {there['to_play']} there"
    planes, other = (
        np.frombuffer(cast(bytes, each["observe()"]), np.float32).reshape(reached.observation_shape)
        for each in (here, there)
    )
    image_of_planes = planes.ravel()[symmetry.planes].reshape(other.shape)
    if found := first_difference(image_of_planes, other, ("the image has", "the position there")):
        yield f"observe() {found}"


def described(position: Game, number: int, symmetry: Symmetry) -> str:
    """Return a symmetry in words: `"symmetries()[1] (the half turn, which maps a1 to c3)"`."""
    parts = [kind_of(symmetry.planes, position.observation_shape)]
    moved = [(a, int(b)) for a, b in enumerate(np.ravel(symmetry.actions)) if a != b]
    if moved and moved[0][1] in range(position.num_actions):
        one, other = (name_of(position, action) for action in moved[0])
        parts.append(f"which maps {one} to {other}")
    words = ", ".join(part for part in parts if part)
    return f"symmetries()[{number}] ({words})" if words else f"symmetries()[{number}]"


def kind_of(planes: NDArray[np.intp], shape: Sequence[int]) -> str:
    """Return the name of the rotation or reflection that permutes the numbers of a board; "" if it is another one."""
    numbered = np.arange(np.prod(shape)).reshape(shape)
    kinds = {
        "the half turn": numbered[:, ::-1, ::-1],
        "the left-right reflection": numbered[:, :, ::-1],
        "the reflection of the rows": numbered[:, ::-1],
        "a quarter turn": np.rot90(numbered, 1, axes=(1, 2)),
        "the quarter turn the other way": np.rot90(numbered, 3, axes=(1, 2)),
        "the reflection in a diagonal": numbered.transpose(0, 2, 1),
        "the reflection in the other diagonal": np.rot90(numbered, 2, axes=(1, 2)).transpose(0, 2, 1),
    }
    return next((kind for kind, image in kinds.items() if np.array_equal(image.ravel(), np.ravel(planes))), "")
