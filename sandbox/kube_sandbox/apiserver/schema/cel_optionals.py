"""Rewrites optional fields in CEL expressions (`object.?metadata.?labels.orValue({})`) for the CEL library.

The library does not parse optional fields. This module rewrites a chain of fields that contains `.?name` or `[?'key']`
and ends with `.orValue(...)` or `.hasValue()`: it uses `has` and `in` instead. Other uses of optional values do not
change, and therefore fail to compile.
"""

import re

_STEP = r"(?:\.\??[A-Za-z_]\w*\b(?!\s*\()|\[\??(?:'[^'\\]*'|\"[^\"\\]*\"|\d+)\])"
_WHOLE = re.compile(rf"(?<![\w.])([A-Za-z_]\w*)((?:{_STEP})+)\.(orValue|hasValue)\(", re.ASCII)


def rewritten(expression: str) -> str:
    """The expression with its optional fields rewritten."""
    position = 0
    while found := _WHOLE.search(expression, position):
        end = _closing_parenthesis(expression, found.end())
        if "?" not in found[2] or end < 0:
            position = found.end(2)
            continue
        present, value = _guard_and_path(found[1], re.findall(_STEP, found[2]))
        default = expression[found.end() : end]
        new = f"({present})" if found[3] == "hasValue" else f"({present} ? {value} : ({default}))"
        expression = expression[: found.start()] + new + expression[end + 1 :]
        position = found.start() + 1
    return expression


def _guard_and_path(root: str, steps: list[str]) -> tuple[str, str]:
    """The condition for a chain to have a value, and the chain without its question marks."""
    guards: list[str] = []
    path = root
    for step in steps:
        plain = step.replace("?", "", 1) if step[1] == "?" else step
        if guards or step[1] == "?":
            key = plain[1:-1]
            if plain.startswith("."):
                guards.append(f"has({path}{plain})")
            else:
                guards.append(f"size({path}) > {key}" if key.isdigit() else f"{key} in {path}")
        path += plain
    return " && ".join(guards), path


def _closing_parenthesis(expression: str, start: int) -> int:
    """The index of the parenthesis that closes the one before `start`; -1 if there is none."""
    depth, quote = 1, ""
    for index in range(start, len(expression)):
        character = expression[index]
        if quote:
            quote = "" if character == quote and expression[index - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                return index
    return -1
