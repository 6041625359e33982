"""FieldGuards: fields of pod templates that may not change by accident."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from altershield.api.change_workload import Written
from altershield.api.gates.field_guards import FieldChange, FieldGuard, FieldGuardSpec, FieldRule, GuardAction
from altershield.api.resources import FIELD_GUARDS
from altershield.gates.fields.changes import Field, Fields, TooMuchWorkError
from altershield.gates.fields.paths import Path, PathError, parse
from altershield.gates.fields.values import ABSENT, is_kept, quantity, shown, shown_kept
from altershield.gates.gate import Gate
from altershield.gates.release import Closed, Release, selects_any

_MAX_PATH = 200  # characters of a path in a text
_TOO_MUCH = "the release changes more fields than can be compared with those that are guarded; split it"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, with its paths as they are written and as they are read."""

    rule: FieldRule
    paths: tuple[tuple[str, Path], ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """A FieldGuard with the spec that is in force."""

    namespace: str
    name: str
    rules: FieldGuardSpec
    read: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A field that meets a rule."""

    field: Field
    change: FieldChange
    last: Written | None = None
    """Of `Reverted`: what the releaser wrote last."""


def problems(spec: FieldGuardSpec) -> list[str]:
    """Why the paths of a spec cannot be read; empty: they can."""
    found = []
    for rule in spec.rules:
        for path in rule.paths:
            try:
                parse(path)
            except PathError as error:
                found.append(f"rule {rule.name}: {error}")
    return found


def in_force(guard: FieldGuard) -> Guard | None:
    """The guard in force; None if none is: one that never was accepted denies nothing."""
    metadata, spec = guard.metadata, guard.status.accepted
    if metadata.deletion_timestamp is not None or spec is None or problems(spec):
        return None
    read = tuple(Rule(each, tuple((path, parse(path)) for path in each.paths)) for each in spec.rules)
    return Guard(metadata.namespace, metadata.name, spec, read)


def closed(guards: Iterable[Guard], release: Release, now: float) -> Iterator[Closed]:
    """The guards of one namespace that do not admit the release: one for each rule that it meets."""
    if release.fields is None:
        return
    selecting = [each for each in guards if selects_any(each, release)]
    if not selecting:
        return
    fields = release.fields()
    asks = any(FieldChange.REVERTED in rule.rule.changes for guard in selecting for rule in guard.read)
    last = release.written() if asks else None
    for guard in selecting:
        for rule in guard.read:
            found: list[Match] = []
            try:
                found = matches(rule, fields, last)
                what = _text(found) if found else ""
            except TooMuchWorkError:
                what = _TOO_MUCH
            if what:
                yield Closed(
                    kind=FIELD_GUARDS.kind,
                    namespace=guard.namespace,
                    name=guard.name,
                    rules=guard.rules,
                    reason=rule.rule.message,
                    what=what,
                    rule=rule.rule.name,
                    judges_back=any(each.last is not None for each in found),
                    only_warns=rule.rule.action is GuardAction.WARN,
                )


def matches(rule: Rule, fields: Fields, last: Written | None) -> list[Match]:
    """The fields that meet the rule, those that are reverted first. TooMuchWorkError."""
    found: dict[str, Match] = {}
    for text, path in rule.paths:
        for field in fields.changed(path):
            match = _match(rule.rule, text, field, last)
            if match is not None:
                found.setdefault(field.path, match)
    return sorted(found.values(), key=lambda each: each.last is None)


def _match(rule: FieldRule, path: str, field: Field, last: Written | None) -> Match | None:
    if FieldChange.REVERTED in rule.changes and last is not None and path in last.paths and _reverts(field, last):
        return Match(field, FieldChange.REVERTED, last)
    change = next((each for each in _changes(field) if each in rule.changes), None)
    return Match(field, change) if change is not None else None


def _reverts(field: Field, last: Written) -> bool:
    """Whether the release writes the releaser's own old value again, which somebody has changed since."""
    stored = last.values.get(field.path)
    return is_kept(stored, field.new, field.names) and not is_kept(stored, field.old, field.names)


def _changes(field: Field) -> Iterator[FieldChange]:
    """What the release does to a field, the more exact word first."""
    if field.old is ABSENT:
        yield FieldChange.ADDED
        return
    if field.new is ABSENT:
        yield FieldChange.REMOVED
        return
    old, new = quantity(field.old), quantity(field.new)
    if old is not None and new is not None and old != new:
        yield FieldChange.INCREASED if new > old else FieldChange.DECREASED
    yield FieldChange.CHANGED


def _text(found: list[Match]) -> str:
    more = f" (and {len(found) - 1} more fields)" if len(found) > 2 else " (and another field)" if found[1:] else ""
    return _sentence(found[0]) + more


def _sentence(match: Match) -> str:
    field = match.field
    path = field.path if field.path.isascii() and field.path.isprintable() else ascii(field.path)
    path = path if len(path) <= _MAX_PATH else f"{path[: _MAX_PATH - 1]}…"
    old, new = shown(field.old, field.names), shown(field.new, field.names)
    if match.last is not None:
        return f"{path} {_reverted(match.last, field, old, new)}"
    match match.change:
        case FieldChange.ADDED:
            return f"{path} is added" + (f": {new}" if new else "")
        case FieldChange.REMOVED:
            return f"{path} is removed" + (f"; it is {old} now" if old else "")
        case FieldChange.INCREASED:
            verb = "increases"
        case FieldChange.DECREASED:
            verb = "decreases"
        case _:
            verb = "changes"
    return f"{path} {verb}" + (f" from {old} to {new}" if old and new else "")


def _reverted(last: Written, field: Field, old: str, new: str) -> str:
    manager, user = last.releaser
    by = f"{user} with {manager}" if user and manager else user or manager
    release = f"the last release by {by} ({last.time})"
    was = shown_kept(last.values.get(field.path), field.names)
    if not (old and new and was):
        return f"goes back to its value in {release}, but somebody has changed it since"
    return f"is {old} now, was {was} in {release}, and would be {new} again: somebody has changed it since"


def guarded(guards: Iterable[Guard]) -> dict[str, Path]:
    """The paths of which Reverted needs to know what was written last, by their text."""
    return {
        text: path
        for guard in guards
        for rule in guard.read
        if FieldChange.REVERTED in rule.rule.changes
        for text, path in rule.paths
    }


GUARDS = Gate(FIELD_GUARDS, FieldGuard, in_force, closed)
