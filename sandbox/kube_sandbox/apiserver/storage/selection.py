"""The label and field selectors of a query: parsed once per request, then asked for every object.

The grammar and the error texts are those of `k8s.io/apimachinery`, `pkg/labels` and `pkg/fields`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.storage.registry import ResourceType

_TOKEN = re.compile(r"\s*(==|!=|[()=,<>!]|[^\s()=,<>!]+)")
_SYMBOLS = frozenset(["==", "!=", "(", ")", "=", ",", "<", ">", "!"])
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt", "in": "in", "notin": "notin"}
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?\d{1,18}")

_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and"
    " must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g."
    " 'example.com/MyName')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector. `operator` is in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or not _INTEGER.fullmatch(value):
            return False
        bound = int(next(iter(self.values)))
        return int(value) > bound if self.operator == "gt" else int(value) < bound


FieldTerm = tuple[str, bool, str]
"""A field's path, whether it must equal (or must not), the value."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a list or watch is about."""

    namespace: str
    labels: tuple[Requirement, ...]
    fields: tuple[FieldTerm, ...]

    @property
    def filters(self) -> bool:
        """Whether there is more to it than a namespace."""
        return bool(self.labels or self.fields)

    def matches(self, obj: Object) -> bool:
        metadata = obj["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.labels:
            labels = metadata.get("labels") or {}
            if not all(requirement.matches(labels) for requirement in self.labels):
                return False
        return all((field_value(obj, path) == value) is equal for path, equal, value in self.fields)


def select(resource: ResourceType, namespace: str, name: str, query: Mapping[str, str]) -> Selection:
    """The selection a request asks for. 400 where a selector cannot be read."""
    fields = parse_fields(resource, query.get("fieldSelector", ""))
    if name:
        fields = (*fields, ("metadata.name", True, name))
    return Selection(namespace if resource.namespaced else "", parse_labels(query.get("labelSelector", "")), fields)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """`a=b,c!=d,e in (f,g),!h,i>1`"""
    tokens = _TOKEN.findall(text)
    requirements: list[Requirement] = []
    while tokens:
        if tokens[0] in _SYMBOLS - {"!"}:
            raise _bad(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
        requirements.append(_requirement(tokens))
        if not tokens:
            break
        if (token := tokens.pop(0)) != ",":
            raise _bad(f"found '{token}', expected: ',' or 'end of string'")
        if _peek(tokens) in _SYMBOLS - {"!"} or not tokens:
            raise _bad(f"found '{_peek(tokens)}', expected: identifier after ','")
    return tuple(requirements)


def _bad(why: str) -> StatusError:
    return StatusError(400, why)


def _unparsable(why: str) -> StatusError:
    return _bad(f"unable to parse requirement: {why}")


def _peek(tokens: list[str]) -> str:
    return tokens[0] if tokens else ""


def _pop(tokens: list[str]) -> str:
    return tokens.pop(0) if tokens else ""


def _requirement(tokens: list[str]) -> Requirement:
    absent = tokens[0] == "!"
    if absent:
        tokens.pop(0)
    key = _pop(tokens)
    if not key or key in _SYMBOLS:
        raise _unparsable(f"found '{key}', expected: identifier")
    _check_key(key)
    if absent or _peek(tokens) in ("", ","):
        return Requirement(key, "!" if absent else "exists", frozenset())
    operator = _OPERATORS.get(written := _pop(tokens))
    if operator is None:
        raise _unparsable(f"found '{written}', expected: in, notin, =, ==, !=, gt, lt")
    if written in ("in", "notin"):
        values = _values(tokens)
    else:
        value = "" if _peek(tokens) in ("", ",") else _pop(tokens)
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: identifier")
        values = frozenset([value])
    for index, value in enumerate(sorted(values)):
        _check_value(key, operator, value, index)
    return Requirement(key, operator, values)


def _values(tokens: list[str]) -> frozenset[str]:
    if (token := _pop(tokens)) != "(":
        raise _unparsable(f"found '{token}' expected: '('")
    values = {""} if _peek(tokens) in (")", ",") else set()
    while (part := _pop(tokens)) != ")":
        if part == ",":
            if _peek(tokens) in (")", ","):
                values.add("")
        elif not part or part in _SYMBOLS:
            raise _unparsable(f"found '{part}', expected: ',', or identifier")
        elif _peek(tokens) not in (",", ")"):
            raise _unparsable(f"found '{_peek(tokens)}', expected: ',' or ')'")
        else:
            values.add(part)
    return frozenset(values)


def _check_value(key: str, operator: str, value: str, index: int) -> None:
    if operator in ("gt", "lt") and not _INTEGER.fullmatch(value):
        why = f"values[{index}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
    elif len(value) > 63:
        why = f'values[{index}][{key}]: Invalid value: "{value}": must be no more than 63 bytes'
    elif value and not _NAME.fullmatch(value):
        why = f'values[{index}][{key}]: Invalid value: "{value}": {_VALUE_RULE}'
    else:
        return
    raise _unparsable(why)


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix or (slash and not prefix) or not name:
        why = _KEY_RULE
    elif prefix and not _PREFIX.fullmatch(prefix):
        why = _PREFIX_RULE
    elif len(name) > 63:
        why = "name part must be no more than 63 bytes"
    elif not _NAME.fullmatch(name):
        why = _NAME_RULE
    else:
        return
    raise _unparsable(f'<nil>: Invalid value: "{key}": {why}')


# Built-in kinds without field selectors of their own word the refusal differently from those that have some.
_OWN_FIELDS = frozenset(["Pod", "Node", "ReplicationController", "Event", "Namespace", "Secret", "Service"])


def parse_fields(resource: ResourceType, text: str) -> tuple[FieldTerm, ...]:
    """`metadata.name=x,status.phase!=Running`"""
    terms = []
    for term in re.split(r"(?<!\\),", text):
        if not term:
            continue
        found = re.match(r"((?:[^\\=!]|\\.)*?)(!=|==|=)(.*)$", term, re.DOTALL)
        if found is None:
            raise _bad(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = found.groups()
        if path not in ("metadata.name", "metadata.namespace", *resource.fields):
            raise _bad(_unknown_field(resource, path))
        terms.append((path, operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return tuple(terms)


def selected_name(text: str) -> str:
    """The one name that a field selector asks for, empty if it leaves that open."""
    found = re.search(r"(?:^|,)metadata\.name==?([a-z0-9.:-]+)(?=,|$)", text)
    return found[1] if found else ""


def _unknown_field(resource: ResourceType, path: str) -> str:
    if resource.kind == "Job":
        return f'field label "{path}" not supported for Job'
    if resource.custom is not None or resource.kind in _OWN_FIELDS:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


_EMPTY = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0", "status.successful": "0"}


def field_value(obj: Object, path: str) -> str:
    """The value at a dotted path as selectors see it: text, empty where there is nothing."""
    if path.startswith("regarding."):  # events.k8s.io's names of what the core group stores
        path = path.replace("regarding", "involvedObject", 1)
    elif path == "reportingController":
        path = "reportingComponent"
    elif path == "source":
        return field_value(obj, "source.component") or field_value(obj, "reportingComponent")
    value: object = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _EMPTY.get(path, "") if value is None else str(value)
