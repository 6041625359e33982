"""Label and field selectors of requests."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http.selection import parse_fields, parse_labels, select
from kube_sandbox.apiserver.storage.registry import BUILT_IN

_POD = next(resource for resource in BUILT_IN if resource.kind == "Pod")
_word = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
_labels = st.dictionaries(_word, _word, max_size=4)


@given(_labels)
def test_selector_made_of_all_labels_matches_the_object(labels: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in labels.items())
    assert all(requirement.matches(labels) for requirement in parse_labels(text))


@given(_labels, _word, st.sets(_word, min_size=1, max_size=3))
def test_operators_in_and_notin_are_opposites(labels: dict[str, str], key: str, values: set[str]) -> None:
    listed = ",".join(sorted(values))
    (inside,), (outside,) = parse_labels(f"{key} in ({listed})"), parse_labels(f"{key} notin ({listed})")
    assert inside.matches(labels) is not outside.matches(labels)


@given(st.text(max_size=40))
def test_any_selector_text_is_parsed_or_refused(text: str) -> None:
    for parse in (parse_labels, lambda text: parse_fields(_POD, text)):
        with contextlib.suppress(StatusError):
            parse(text)


def test_pod_fields_are_compared_as_text() -> None:
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "a", "hostNetwork": True}}
    for text, selected in (
        ("spec.nodeName=a", True),
        ("spec.nodeName!=a", False),
        ("spec.hostNetwork=true", True),
        ("status.phase=", True),
        ("status.phase!=Running,metadata.name=p", True),
    ):
        assert select(_POD, "n", "", {"fieldSelector": text}).matches(pod) is selected, text
