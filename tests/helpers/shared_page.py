"""The folder of a shared game, with a runtime that stands for ONNX Runtime, and a plain server of files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from plyzero.kits.browser.game_folder import SharedBot, folder_files
from plyzero.kits.browser.game_texts import find_texts
from plyzero.kits.browser.page_files import page_files
from plyzero.kits.browser.sharing import LIST
from plyzero.play.bundled_bots import find_card
from plyzero.rules.catalog import load_game
from tests.helpers.node_search import rules_of

RUNTIME = b"""
export const env = { wasm: {} };

export class Tensor {
  constructor(type, data, dims) {
    Object.assign(this, { type, data, dims });
  }
}

export const InferenceSession = {
  async create(bytes) {
    const actions = bytes[0];
    return {
      outputNames: ["logits", "wdl"],
      async run({ observations }) {
        const count = observations.dims[0];
        const draws = Float32Array.from({ length: 3 * count }, (_, i) => Number(i % 3 === 1));
        return { logits: { data: new Float32Array(count * actions) }, wdl: { data: draws } };
      },
    };
  },
};
"""
"""Stands for onnxruntime-web, with a network for as many actions as the first byte of its file says."""

MODEL = {"version": "one", "bytes": 1, "bot": "the bundled bot", "step": None, "isWatched": False}
"""model.json of a folder."""


def files_of_folder(name: str) -> dict[str, bytes]:
    """Return the files of the shared folder of a game, by name, with the levels of its bundled bot if there is one."""
    files = dict(_files(name))
    files[LIST] = json.dumps(sorted(files)).encode()
    return files


@cache
def _files(name: str) -> Mapping[str, bytes]:
    game = load_game(name)
    bot = SharedBot("the bundled bot", bytes([game.start.num_actions]), {}, card=find_card(game))
    model = {"model.json": json.dumps(MODEL).encode()}
    own = folder_files(game, rules_of(game), find_texts(game), bot)
    return {**page_files(), "ort.wasm.min.mjs": RUNTIME, **own, **model}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name, with folders before it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """Serve the files of a folder as python -m http.server does; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
