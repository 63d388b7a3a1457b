"""Errors of Numba, reduced to the line of the user's file, the reason, and what to do."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Final

from plyzero.errors import cut
from plyzero.rules.machine_code import Function

_PREAMBLE: Final = re.compile(r"Failed in \w+ mode pipeline|^\s*$|^During: |^Overload of|^Internal error")
_PLACE: Final = re.compile(r'^File "(.+)", line (\d+):', re.MULTILINE)
_RAISED_FROM: Final = re.compile(r"Raised from (.+) \((\d+)\)")
_SPECIFIC: Final = re.compile(r"Numba\w*Error: (.+)")  # why an implementation does not fit, in a list of candidates
_SIGNATURE: Final = re.compile(r">>> (.+)")

_ADVICE: Final = (
    (r"Untyped global name '(\w+)'.*<class 'function'>", r"decorate \1 with @kernel (from plyzero import kernel)"),
    (r"reflected (list|set)|class '(dict|frozenset)'|DictType", "make the table an array or a tuple"),
    (r"[Ff]ield '(\w+)'", r"use a field that State has, or add \1 to State"),
    (r"name '(\w+)' is not defined|NameError", "define or import this name"),
    (r"No conversion from .* to int64", "return ONGOING, DRAW, 0 or 1 in every branch"),
    (r"Cannot unify", "give the variable values of one type only"),
    (r"Type of variable '\$.* cannot be determined", "assign in a line of its own where there is a :="),
    (r"(enumerate|zip)\(.*Tuple\(", "count with range: a field and a number in one tuple have two types"),
    (r"yield in a closure", r"write a loop in place of any(... for ...) or sum(... for ...)"),
    (r"cannot index .* with (\d+) indices", "use as many indices as the field has dimensions in State"),
    (r"attribute", "use what Numba supports for this type, or write a loop"),
)
_OTHERWISE: Final = "write this with numbers, arrays and loops, or subclass Game instead of CompiledGame"


def compile_error(name: str, function: Function, error: Exception) -> str:
    """Return one sentence about a rule that Numba cannot compile: file, line, source, reason and what to do.

    name:     the rule as the user calls it, `"MyGame.play"`.
    function: the rule as a plain function.
    """
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))  # Numba colours its messages if colorama is installed
    reason = reason_of(text)
    file, number = place_of(text, function, reason)
    source = linecache.getline(file, number).strip()
    advice = (found.expand(to_do) for pattern, to_do in _ADVICE if (found := re.search(pattern, text)))
    return (
        f"{name} cannot be compiled: {Path(file).name}, line {number}{f', `{source}`' if source else ''}: {reason}; "
        f"{next(advice, _OTHERWISE)}"
    )


def reason_of(text: str) -> str:
    """Return the line of Numba's message that has the reason."""
    lines = [line.strip() for line in text.splitlines() if not _PREAMBLE.search(line)]
    reason = lines[0] if lines else text.strip() or "Numba gives no reason"
    if "No implementation of function" in reason or "Invalid use of" in reason:
        found = _SPECIFIC.search(text) or _SIGNATURE.search(text)
        reason = found[1] if found and "numba" not in found[1].lower() else reason
        if found and found.re is _SIGNATURE:
            reason = f"Numba does not support {reason}"
    return cut(reason.partition(". Raised from")[0].rstrip(" ."), 200)


def place_of(text: str, function: Function, reason: str) -> tuple[str, int]:
    """Return the file and line of the mistake: the innermost one that Numba names in a user's file, or the rule's."""
    code = getattr(function, "py_func", function).__code__
    own = Path(__file__).parent
    for file, line in [*_RAISED_FROM.findall(text), *_PLACE.findall(text)]:
        path = Path(file).resolve()
        if int(line) and path.parent != own and "numba" not in path.parts:  # line 0 is an unknown location
            return str(path), int(line)
    name = re.search(r"name '(\w+)'", reason)  # Numba reports which name is undefined, but not where
    lines = {number: linecache.getline(code.co_filename, number) for _, _, number in code.co_lines() if number}
    named = (number for number, source in lines.items() if name and re.search(rf"\b{name[1]}\b", source))
    return code.co_filename, next(named, code.co_firstlineno)
