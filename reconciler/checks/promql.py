"""PromQL with placeholders. They are replaced inside quoted strings only, and a value contains no character that ends a
string or begins an escape sequence. So a value cannot become part of the query's syntax."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.checks.placeholders import NUMBERS, PATTERNS, PLACEHOLDER, Value, unknown_placeholder

MAX_QUERY = 65_536
"""The maximum number of characters of a query with its values."""

# Prometheus' lexer (promql/parser/lex.go): '…' and "…" have escape sequences and end before a newline, `…` has none.
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)
    |(?P<open>["'`])
    |(?P<other>[^"'`\#]+)""",
    re.VERBOSE,
)
_MATCHES_PATTERN = re.compile(r"[=!]~\s*\Z")


class _Token(NamedTuple):
    kind: str
    text: str
    is_pattern: bool
    """A string that is compared as a regular expression."""


def problem(query: str) -> str:
    """A sentence about what is wrong with the placeholders or the quotes of a query; empty if nothing is."""
    if sentence := unknown_placeholder(query):
        return sentence
    for token in _tokens(query):
        names = PLACEHOLDER.findall(token.text)
        if token.kind == "open":
            return f"a string that begins with {token.text} does not end"
        if token.kind == "string" and "\\{{" in token.text:
            return "a backslash before {{ changes the meaning of the value"
        if token.kind == "other" and (outside := [name for name in names if name not in NUMBERS]):
            return f"{{{{{outside[0]}}}}} has to be in quotes"
        if token.kind == "string" and not token.is_pattern and (found := [name for name in names if name in PATTERNS]):
            return f"{{{{{found[0]}}}}} is a regular expression: compare it with =~ or !~"
    return ""


def render(query: str, values: Mapping[str, Value]) -> str:
    """The query with its values. ValueError, as a sentence, if a placeholder has no value."""
    if sentence := problem(query):
        raise ValueError(sentence)
    text = "".join(_replaced(token, values) for token in _tokens(query))
    if len(text) > MAX_QUERY:
        raise ValueError(f"the query with its values is longer than {MAX_QUERY} characters")
    return text


def _replaced(token: _Token, values: Mapping[str, Value]) -> str:
    if token.kind == "comment":
        return token.text

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        if found is None:
            raise ValueError(f"{{{{{match[1]}}}}} has no value for this release")
        return found.pattern if token.is_pattern else found.text

    return PLACEHOLDER.sub(value, token.text)


def _tokens(query: str) -> Iterator[_Token]:
    before = ""
    for match in _TOKEN.finditer(query):
        kind = str(match.lastgroup)
        yield _Token(kind, match[0], kind == "string" and _MATCHES_PATTERN.search(before) is not None)
        if kind != "comment":
            before = before + match[0] if kind == "other" else ""
