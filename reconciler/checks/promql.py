"""PromQL with placeholders. They are replaced inside quoted strings only, and a value contains no character that ends a
string or begins an escape sequence. So a value cannot become part of the query's syntax."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.checks.placeholders import GROUP, NUMBERS, PATTERNS, VARIABLES, Value, unknown_placeholder

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
# `$1` and `${name}` are the groups of label_replace, and `$` is also the end of a text in a regular expression.
_REFERENCE = re.compile(r"\{\{[ \t]*([A-Za-z]*)[ \t]*\}\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_MATCHES_PATTERN = re.compile(r"[=!]~\s*\Z")


class _Token(NamedTuple):
    kind: str
    text: str
    is_pattern: bool
    """A string that is compared as a regular expression."""


def unknown(query: str, *, of_pods: bool = False) -> str:
    """A sentence about the first placeholder of a query that does not exist; empty if there is none. `of_pods`: whether
    the query has `$pods`, because it is asked about several groups of pods."""
    if sentence := unknown_placeholder(query):
        return sentence
    for token in _tokens(query):
        for match in _REFERENCE.finditer(token.text if token.kind != "comment" else ""):
            if match[2] is not None and match[2] not in VARIABLES and not (of_pods and match[2] == "pods"):
                known = ", ".join(f"${name}" for name in VARIABLES)
                return f"${match[2][:32]} is not a placeholder; there are: {known}; the group of a regex is ${{name}}"
    return ""


def named(text: str) -> Iterator[str]:
    """The placeholders in a text, as `{{pods}}` or `$new_pods`."""
    for match in _REFERENCE.finditer(text):
        yield f"{{{{{match[1]}}}}}" if match[2] is None else f"${match[2]}"


def problem(query: str, *, of_pods: bool = False) -> str:
    """A sentence about what is wrong with the placeholders or the quotes of a query; empty if nothing is. `of_pods`: as
    for `unknown`; the query has to contain `$pods` then."""
    if sentence := unknown(query, of_pods=of_pods):
        return sentence
    names = set[str]()
    for token in _tokens(query):
        found = [(match[0], _name(match)) for match in _REFERENCE.finditer(token.text)]
        if token.kind == "open":
            return f"a string that begins with {token.text} does not end"
        if token.kind == "string" and any(f"\\{text}" in token.text for text, _ in found):
            return "a backslash before {{ or $ changes the meaning of the value"
        names |= {name for _, name in found if token.kind == "string"}
        for text, name in found:
            if token.kind == "other" and name not in NUMBERS:
                return f"{text} has to be in quotes"
            if token.kind == "string" and not token.is_pattern and name in PATTERNS:
                return f"{text} is a regular expression: compare it with =~ or !~"
    return "it has no $pods" if of_pods and GROUP not in names else ""


def render(query: str, values: Mapping[str, Value]) -> str:
    """The query with its values. ValueError, as a sentence, if a placeholder has no value."""
    if sentence := problem(query, of_pods=GROUP in values):
        raise ValueError(sentence)
    text = "".join(_replaced(token, values) for token in _tokens(query))
    if len(text) > MAX_QUERY:
        raise ValueError(f"the query with its values is longer than {MAX_QUERY} characters")
    return text


def _replaced(token: _Token, values: Mapping[str, Value]) -> str:
    if token.kind == "comment":
        return token.text

    def value(match: re.Match[str]) -> str:
        found = values.get(_name(match))
        if found is None:
            raise ValueError(f"{match[0]} has no value for this release")
        return found.pattern if token.is_pattern else found.text

    return _REFERENCE.sub(value, token.text)


def _name(match: re.Match[str]) -> str:
    """The name of the value of a placeholder."""
    return match[1] if match[2] is None else VARIABLES.get(match[2], GROUP)


def _tokens(query: str) -> Iterator[_Token]:
    before = ""
    for match in _TOKEN.finditer(query):
        kind = str(match.lastgroup)
        yield _Token(kind, match[0], kind == "string" and _MATCHES_PATTERN.search(before) is not None)
        if kind != "comment":
            before = before + match[0] if kind == "other" else ""
