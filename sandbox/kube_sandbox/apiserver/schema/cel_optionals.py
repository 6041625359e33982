"""CEL's optional fields (`object.?metadata.?labels.orValue({})`), which our CEL does not parse, as what it does.

A chain of fields with `.?name` or `[?'key']` in it, ended by `.orValue(...)` or `.hasValue()`, is rewritten with `has`
and `in`. Other uses of optional values stay as they are, and fail to compile.
"""

import re

_STEP = r"(?:\.\??[A-Za-z_]\w*\b(?!\s*\()|\[\??(?:'[^'\\]*'|\"[^\"\\]*\"|\d+)\])"
_WHOLE = re.compile(rf"(?<![\w.])([A-Za-z_]\w*)((?:{_STEP})+)\.(orValue|hasValue)\(", re.ASCII)


def rewritten(expression: str) -> str:
    """The expression without optional fields, as far as they are of the usual form."""
    position = 0
    while found := _WHOLE.search(expression, position):
        end = _closing(expression, found.end())
        if "?" not in found[2] or end < 0:
            position = found.end(2)
            continue
        present, value = _guarded(found[1], re.findall(_STEP, found[2]))
        default = expression[found.end() : end]
        new = f"({present})" if found[3] == "hasValue" else f"({present} ? {value} : ({default}))"
        expression = expression[: found.start()] + new + expression[end + 1 :]
        position = found.start() + 1
    return expression


def _guarded(root: str, steps: list[str]) -> tuple[str, str]:
    """What has to hold for a chain to have a value, and the chain without its question marks."""
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


def _closing(expression: str, start: int) -> int:
    """Where the parenthesis closes that was opened before `start`; -1 if it does not."""
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
