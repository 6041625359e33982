"""The formats of names, labels and other texts. Each function returns the error texts of Kubernetes for a text.

The rules are those of apimachinery, pkg/util/validation.
"""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_PARTS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def _matching(pattern: str, text: str, rule: str, *examples: str) -> list[str]:
    if re.fullmatch(pattern, text):
        return []
    listed = " or ".join(f"'{example}', " for example in examples)
    hint = f"e.g. {listed}" if examples else ""
    return [f"{rule} ({hint}regex used for validation is '{pattern}')"]


def _max_length(text: str, limit: int, unit: str = "characters") -> list[str]:
    return [] if len(text.encode()) <= limit else [f"must be no more than {limit} {unit}"]


def label_1123(text: str) -> list[str]:
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character"
    )
    if re.fullmatch(_SUBDOMAIN, text) and "." in text:
        return [*_max_length(text, 63), "must not contain dots"]
    return [*_max_length(text, 63), *_matching(_LABEL, text, rule, "my-name", "123-abc")]


def subdomain(text: str, unit: str = "characters") -> list[str]:
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character"
    )
    return [*_max_length(text, 253, unit), *_matching(_SUBDOMAIN, text, rule, "example.com")]


def label_1035(text: str) -> list[str]:
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return [*_max_length(text, 63), *_matching(_LABEL_1035, text, rule, "my-name", "abc-123")]


def path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in text]


def qualified_name(text: str) -> list[str]:
    """Validate `name` or `domain/name`, the format of label keys."""
    examples = ("MyName", "my.name", "123-abc")
    match text.split("/"):
        case [name]:
            wrong = []
        case [domain, name]:
            wrong = [f"prefix part {why}" for why in (subdomain(domain, "bytes") if domain else ["must be non-empty"])]
        case _:
            rule = _matching(_QUALIFIED, "", f"a valid label key {_PARTS}", *examples)[0]
            return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if not name:
        wrong.append("name part must be non-empty")
    wrong += [f"name part {why}" for why in _max_length(name, 63, "bytes")]
    return [*wrong, *_matching(_QUALIFIED, name, f"name part {_PARTS}", *examples)]


def label_value(text: str) -> list[str]:
    rule = f"a valid label must be an empty string or {_PARTS.removeprefix('must ')}"
    return [*_max_length(text, 63, "bytes"), *_matching(f"({_QUALIFIED})?", text, rule, "MyValue", "my_value", "12345")]


def config_key(text: str) -> list[str]:
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    wrong = [
        *_max_length(text, 253),
        *_matching(_CONFIG_KEY, text, rule, "key.name", "KEY_NAME", "key-name"),
    ]
    if text in (".", ".."):
        wrong.append(f"must not be '{text}'")
    elif text.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def percent(text: str) -> list[str]:
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return _matching(_PERCENT, text, rule, "1%", "93%")


def header_name(text: str) -> list[str]:
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return _matching(_HEADER, text, rule, "X-Header-Name")


def variable_name(text: str) -> list[str]:
    if text.isascii() and text.isprintable() and "=" not in text:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_number(number: int) -> list[str]:
    return [] if 1 <= number <= 65535 else ["must be between 1 and 65535, inclusive"]


def port_name(text: str) -> list[str]:
    wrong = _max_length(text, 15)
    if not re.fullmatch("[-a-z0-9]+", text):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in text:
        wrong.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def name_prefix(text: str) -> str:
    """A valid example of a name with this prefix. A prefix may end with a hyphen, a name may not."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text
