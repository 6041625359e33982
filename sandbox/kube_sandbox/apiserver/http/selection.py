"""The label and field selectors of a query string. Each request parses them once and then tests every object.

The grammar and the error texts are those of `k8s.io/apimachinery`, `pkg/labels` and `pkg/fields`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kube_sandbox import label_selectors
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.apiserver.validation import texts

_TOKEN = re.compile(r"\s*(==|!=|[()=,<>!]|[^\s()=,<>!]+)")
_SYMBOLS = frozenset(["==", "!=", "(", ")", "=", ",", "<", ">", "!"])
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt", "in": "In", "notin": "NotIn"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a label selector. For the operators see `label_selectors.meets`."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return label_selectors.meets(labels, self.key, self.operator, self.values)


FieldTerm = tuple[str, bool, str]
"""One term of a field selector: the path, whether the field must equal the value (else it must differ), the value."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a list or watch selects."""

    namespace: str
    labels: tuple[Requirement, ...]
    fields: tuple[FieldTerm, ...]

    @property
    def filters(self) -> bool:
        """Whether there is a label or field selector."""
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
    """The selection of a request. Raises StatusError 400 when a selector is malformed."""
    fields = parse_fields(resource, query.get("fieldSelector", ""))
    if name:
        fields = (*fields, ("metadata.name", True, name))
    return Selection(namespace if resource.namespaced else "", parse_labels(query.get("labelSelector", "")), fields)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Parse a label selector such as `a=b,c!=d,e in (f,g),!h,i>1`. Raises StatusError 400."""
    tokens = _TOKEN.findall(text)
    requirements: list[Requirement] = []
    while tokens:
        if tokens[0] in _SYMBOLS - {"!"}:
            raise _bad_request(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
        requirements.append(_requirement(tokens))
        if not tokens:
            break
        if (token := tokens.pop(0)) != ",":
            raise _bad_request(f"found '{token}', expected: ',' or 'end of string'")
        if _peek(tokens) in _SYMBOLS - {"!"} or not tokens:
            raise _bad_request(f"found '{_peek(tokens)}', expected: identifier after ','")
    return tuple(requirements)


def _bad_request(why: str) -> StatusError:
    return StatusError(400, why)


def _unparsable(why: str) -> StatusError:
    return _bad_request(f"unable to parse requirement: {why}")


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
        return Requirement(key, "DoesNotExist" if absent else "Exists", frozenset())
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
    if operator in ("Gt", "Lt") and not label_selectors.is_integer(value):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _unparsable(f'values[{index}]: Invalid value: "{value}": {why}')
    if wrong := texts.label_value(value):
        raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}')


def _check_key(key: str) -> None:
    if wrong := texts.qualified_name(key):
        raise _unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(wrong)}')


# The real server refuses an unknown field with one text for these kinds, and with another for all other built-in kinds.
_KINDS_WITH_FIELD_SELECTORS = frozenset(
    ["Pod", "Node", "ReplicationController", "Event", "Namespace", "Secret", "Service"]
)


def parse_fields(resource: ResourceType, text: str) -> tuple[FieldTerm, ...]:
    """Parse a field selector such as `metadata.name=x,status.phase!=Running`. Raises StatusError 400."""
    terms = []
    for term in sorted(re.findall(r"(?:[^\\,]|\\.?)+", text, re.DOTALL)):
        found = re.match(r"(.*?)(!=|==|=)(.*)$", term, re.DOTALL)
        if found is None:
            raise _bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = found.groups()
        terms.append((path, operator != "!=", _unescaped(value)))
    common = _common_fields(resource)
    for path, _, _ in terms:
        if path not in (*common, *resource.fields):
            raise _bad_request(_unknown_field(resource, path))
    return tuple(terms)


def _unescaped(value: str) -> str:
    """The value of a term, in which a backslash, a comma and an equals sign follow a backslash."""
    if found := re.match(r"(?:[^\\=]|\\[\\,=])*+(\\.?|=)", value, re.DOTALL):
        why = "unescaped character in value: 61" if found[1] == "=" else f"invalid escape sequence: {found[1]}"
        raise _bad_request(f"invalid field selector: {why}")
    return re.sub(r"\\(.)", r"\1", value)


def selected_name(text: str) -> str:
    """The name that a field selector requires; empty when it requires none."""
    found = re.search(r"(?:^|,)metadata\.name==?([a-z0-9.:-]+)(?=,|$)", text)
    return found[1] if found else ""


def _common_fields(resource: ResourceType) -> tuple[str, ...]:
    """The fields that each kind has. Kinds with fields of their own have a namespace only if they are namespaced."""
    if resource.namespaced or not (resource.custom is not None or resource.kind in _KINDS_WITH_FIELD_SELECTORS):
        return ("metadata.name", "metadata.namespace")
    return ("metadata.name",)


def _unknown_field(resource: ResourceType, path: str) -> str:
    if resource.kind == "Job":
        return f'field label "{path}" not supported for Job'
    if resource.custom is not None or resource.kind in _KINDS_WITH_FIELD_SELECTORS:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


_ZERO_VALUES = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}


def field_value(obj: Object, path: str) -> str:
    """The value at a dotted path as text, as field selectors compare it. A missing value is empty text."""
    if path.startswith("regarding."):  # the name in events.k8s.io; events are stored with the core group's names
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
    return _ZERO_VALUES.get(path, "") if value is None else str(value)
