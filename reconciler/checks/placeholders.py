"""The placeholders `{{name}}` in the texts of a DefensePolicy's checks, those of the form `$name` in PromQL, and their
values for a batch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from altershield.api.change_workload import ChangeWorkload
from altershield.workloads import BY_KIND, named_kind
from reconciler.checks.check import Subject

NAMES = ("namespace", "workload", "kind", "version", "previousVersion", "pods", "previousPods", "podCount")

VARIABLES = {
    "new_pods": "pods",
    "old_pods": "oldPods",
    "version": "version",
    "previous_version": "previousVersion",
    "namespace": "namespace",
    "workload": "workload",
    "step": "step",
}
"""The names after `$` in PromQL, and the value that each of them has."""

GROUP = "group"
"""The value of `$pods`, in a query that is asked about several groups of pods."""

PATTERNS = ("pods", "previousPods", "oldPods", GROUP)
"""These are regular expressions."""

NUMBERS = ("podCount", "step")

PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z]*)[ \t]*\}\}")

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_GENERATED_PREFIX = 58  # k8s.io/apiserver, names.SimpleNameGenerator: a longer prefix of a pod's name is cut


@dataclass(frozen=True, slots=True)
class Value:
    """A value. `pattern` is a regular expression that matches `text`, or the value itself if that is a regular
    expression. Both consist of characters that have no meaning in a quoted string of any kind."""

    text: str
    pattern: str


def unknown_placeholder(text: str) -> str:
    """A sentence about the first placeholder that does not exist; empty if there is none."""
    rest = PLACEHOLDER.sub(lambda match: "" if match[1] in NAMES else match[0], text)
    start = rest.find("{{")
    if start < 0:
        return ""
    shown = re.match(r"\{\{[^}\n]{0,32}}{0,2}", rest[start:])
    known = ", ".join(NAMES)
    return f"{shown[0] if shown else '{{'} is not a placeholder; there are: {known}"


def values_of(subject: Subject) -> Mapping[str, Value]:
    """The values of the placeholders. One without a value is absent: a first release has no previous version.

    ValueError if a name in the ChangePod or the ChangeWorkload is not a name that Kubernetes accepts.
    """
    release = subject.release
    pods = subject.change_pod.spec.pod_infos
    plain = {
        "namespace": subject.change_pod.metadata.namespace,
        "workload": release.spec.workload_ref.name or release.spec.service_name,
        "kind": release.spec.workload_ref.kind,
        "version": release.spec.reversion,
        "previousVersion": release.status.previous.version,
        "podCount": str(len(pods)),
        "step": str(release.status.rollout.step),
    }
    found = {name: Value(text, escaped(text)) for name, text in plain.items() if text}
    alternatives = "|".join(escaped(pod.pod) for pod in pods)
    previous = _previous_pods(release)
    patterns = {"pods": alternatives, "previousPods": previous, "oldPods": "|".join(subject.old_pods) or previous}
    return found | {name: Value(text, text) for name, text in patterns.items() if text}


def earlier_pods(subject: Subject) -> str:
    """The regular expression of the names that pods of the workload had before the release; empty if their names do not
    show which workload they belong to."""
    release = subject.release
    adapter = BY_KIND.get(named_kind(release.spec.workload_ref))
    name = release.spec.workload_ref.name
    if adapter is None or adapter.intermediate is not None:
        return _previous_pods(release)
    return f"{escaped(name)}-[a-z0-9]+" if len(name) < _MAX_GENERATED_PREFIX else ""


def generated(owner: str) -> str:
    """The regular expression of the names of pods that this object creates with a generated suffix; empty if the object
    is named so long that they do not show it."""
    return f"{escaped(owner)}-[a-z0-9]{{5}}" if 0 < len(owner) < _MAX_GENERATED_PREFIX else ""


def escaped(name: str) -> str:
    """The regular expression that matches a name. ValueError if it is not a name.

    Of the characters of names, only the dot has a meaning in regular expressions. `[.]` needs no backslash, which would
    be another text in each kind of quotes.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name[:64]!r} is not a name")
    return name.replace(".", "[.]")


def _previous_pods(release: ChangeWorkload) -> str:
    """The regular expression of the previous version's pods; empty if their names do not show the version."""
    adapter = BY_KIND.get(named_kind(release.spec.workload_ref))
    if adapter is None or adapter.intermediate is None:
        return ""
    return generated(release.status.previous.name)
