"""Sharing a game: its rules are compiled, its texts are found, both are proven, and only then a folder is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from plyzero.kits.browser.folder_sizes import Size, sizes_of
from plyzero.kits.browser.game_folder import SharedBot, expect_free, folder_files, write_folder
from plyzero.kits.browser.game_texts import Report, find_texts
from plyzero.kits.browser.proof import Proof, prove
from plyzero.kits.browser.wasm import compile_rules
from plyzero.rules.catalog import GameSpec

LIST: Final = "files.json"
"""The file with the names of the others, which a page keeps for visits without a network."""


class Shared(NamedTuple):
    """A game that was shared.

    sizes: those of the parts of its folder, as `sizes_of` returns them.
    proof: what was compared before.
    notes: what the page leaves out, as sentences.
    """

    sizes: Mapping[str, Size]
    proof: Proof
    notes: list[str]


def share_game(
    game: GameSpec,
    bot: SharedBot,
    directory: Path,
    *,
    page: Mapping[str, bytes],
    positions: int,
    report: Report = lambda text: None,
) -> Shared:
    """Write the game and its bot into `directory`, as `write_folder` does, once the proof holds.

    page: the files that do not depend on the game, by name.
    Raises UserError if the game cannot be shared, and FailedError if the proof fails; then nothing is written.
    """
    expect_free(directory)
    report("the rules are compiled for WebAssembly")
    module = compile_rules(game)
    texts = find_texts(game, report)
    proof = prove(game, module, texts, positions=positions, report=report)
    files = {**page, **folder_files(game, module, texts, bot)}
    files[LIST] = json.dumps(sorted(files)).encode()
    write_folder(directory, files)
    return Shared(sizes_of(files), proof, texts.notes)
