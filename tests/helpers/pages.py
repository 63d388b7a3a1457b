"""Pages of documents as tests read them."""

import re
from pathlib import Path


def blocks(path: Path, language: str) -> list[str]:
    """Return the blocks of code of a page that are in this language, "" for those without one."""
    fences = re.split(r"^```(.*)\n", path.read_text(), flags=re.MULTILINE)  # text, language, block, "", text, ...
    return [block for found, block in zip(fences[1::4], fences[2::4], strict=True) if found == language]
