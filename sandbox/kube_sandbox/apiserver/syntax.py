"""Error texts for malformed JSON and YAML, as Go's decoders word them."""

import json
import re

import yaml

_CONTEXTS = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def json_error(text: str) -> str:
    """The error text for a malformed JSON document."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = error.pos + error.msg.startswith("Invalid \\escape")
        if error.msg == "Illegal trailing comma before end of object":
            position = text.index("}", position)
        rest = text[position:].lstrip()
        if not rest or error.msg == "Unterminated string starting at":
            return "unexpected end of JSON input"
        where = _CONTEXTS.get(error.msg.removesuffix(": "), "looking for beginning of value")
        if error.msg == "Expecting ',' delimiter":
            where = (
                "after array element" if _innermost_bracket(text[:position]) == "[" else "after object key:value pair"
            )
        shown = rest[0] if rest[0].isprintable() else f"\\x{ord(rest[0]):02x}"
        return f"invalid character '{shown}' {where}"
    except RecursionError:
        return "exceeded max depth"
    return "invalid number or text"  # Python accepts values such as NaN that are not JSON


def _innermost_bracket(text: str) -> str:
    """The innermost bracket that is open at the end of a text; empty when none is."""
    opened = [""]
    for character in _STRING.sub("", text):
        if character in "{[":
            opened.append(character)
        elif character in "}]":
            opened.pop()
    return opened[-1]


def yaml_error(error: Exception) -> str:
    """The error text for a malformed YAML document."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    line = error.problem_mark.line
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    return f"line {line}: {error.problem}" if line else str(error.problem)
