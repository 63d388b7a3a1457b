"""Count the project: lines of the core, of each kit and by folder, words of documents, constants used once, `Any`.

python -m benchmarks.size
"""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("plyzero", "selfplay", "trainer", "games")


def modules(*folders: str) -> list[Path]:
    """Return the Python files below `folders`."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lines(*folders: str) -> int:
    """Return the number of lines of Python below `folders`."""
    return sum(len(path.read_text().splitlines()) for path in modules(*folders))


def words(*pages: Path) -> int:
    """Return the number of words of the documents, code in them included."""
    return sum(len(page.read_text().split()) for page in pages)


def pages() -> list[Path]:
    """Return README and the pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def used_once() -> list[str]:
    """Return the named constants of the product, as `path:NAME`, whose name occurs once beside its definition."""
    text = "\n".join(path.read_text() for path in modules(*PRODUCT))
    uses = Counter(re.findall(r"\b_?[A-Z][A-Z0-9_]+\b", text))
    found = []
    for path in modules(*PRODUCT):
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [each.id for each in targets if isinstance(each, ast.Name) and each.id.isupper()]
            found += [f"{path.relative_to(ROOT)}:{name}" for name in names if uses[name] <= 2]
    return found


def main() -> None:
    """Print the counts."""
    kits = {path.name: lines(f"plyzero/kits/{path.name}") for path in sorted((ROOT / "plyzero/kits").glob("*/"))}
    core = lines(*PRODUCT) - lines("plyzero/kits")
    print(f"core {core:,} lines; kits: {', '.join(f'{name} {size:,}' for name, size in kits.items() if size)}")
    print(f"product {lines(*PRODUCT):,} lines, benchmarks {lines('benchmarks'):,}, tests {lines('tests'):,}")
    results = sum(path.stat().st_size for path in (ROOT / "benchmarks" / "results").iterdir())
    print(f"results of benchmarks {results / 1000:.0f} kB")
    print(f"documents {len(pages())} pages, {words(*pages()):,} words")
    print(f"constants used once {len(used_once())}")
    print("Any", sum(len(re.findall(r"\bAny\b", path.read_text())) for path in modules(*PRODUCT)))
    for folder in sorted({path.parent for path in modules(*PRODUCT)}):
        own = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        size = sum(len(path.read_text().splitlines()) for path in folder.glob("*.py"))
        print(f"{folder.relative_to(ROOT)!s:26} {size:6,} lines in {len(own):2} modules")


if __name__ == "__main__":
    main()
