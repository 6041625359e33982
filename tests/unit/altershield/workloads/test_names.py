"""Names of ChangeWorkloads and ChangePods are valid, and different for different workloads."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from altershield.api import names
from altershield.workloads import change_workload_name
from tests.support.workloads import BY_NAME, GROUP_KINDS

VERSION = "1" * 32
workload_names = st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,240}[a-z0-9])?\Z").filter(
    lambda name: ".." not in name and ".-" not in name and "-." not in name
)
prefixed = st.builds(
    lambda prefix, name: prefix + name, st.sampled_from(["statefulset.", "cloneset.", ""]), workload_names
)
kinds = st.sampled_from(sorted(BY_NAME))
long = st.builds(lambda name, length: (name * 253)[:length].rstrip("-.") or "a", workload_names, st.integers(195, 253))


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("Deployment", "web", f"web--x--{VERSION}"),
        ("StatefulSet", "web", f"statefulset.web--x--{VERSION}"),
        ("DaemonSet", "web", f"daemonset.web--x--{VERSION}"),
        ("CloneSet", "web", f"cloneset.web--x--{VERSION}"),
        ("Deployment", "a" * 202, f"{'a' * 202}--x--{VERSION}"),
    ],
)
def test_change_workload_name_consists_of_kind_workload_and_version(kind: str, name: str, expected: str) -> None:
    assert change_workload_name(GROUP_KINDS[kind], name, VERSION) == expected


def test_deployment_named_like_a_stateful_set_gets_another_change_workload_name() -> None:
    name = change_workload_name(GROUP_KINDS["Deployment"], "statefulset.web", VERSION)
    assert name != change_workload_name(GROUP_KINDS["StatefulSet"], "web", VERSION)
    assert len(name) == 203 + 5 + 32


@given(first=st.tuples(kinds, prefixed | long), second=st.tuples(kinds, prefixed | long))
@example(("StatefulSet", "web"), ("Deployment", "statefulset.web"))
@example(("Deployment", "a" * 203), ("Deployment", "a" * 204))
@example(("Deployment", "a" * 203), ("Deployment", "a" * 203 + "b" * 50))
@example(("StatefulSet", "a" * 191), ("StatefulSet", "a" * 192))
@example(("StatefulSet", "a" * 191), ("Deployment", "statefulset." + "a" * 191))
def test_different_workloads_have_different_change_workload_names(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    if first != second:
        (kind, name), (other, named) = first, second
        own = change_workload_name(GROUP_KINDS[kind], name, VERSION)
        assert own != change_workload_name(GROUP_KINDS[other], named, VERSION)


@given(kind=kinds, name=prefixed | long, number=st.integers(1, 10**8 - 1))
def test_every_name_is_valid_and_can_be_parsed(kind: str, name: str, number: int) -> None:
    release = change_workload_name(GROUP_KINDS[kind], name, VERSION)
    batch = names.change_pod_name(release, number)

    assert len(batch) <= 253
    for each in (release, batch):
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", each), each
    assert names.version_in(release) == VERSION
    assert names.change_workload_of(batch) == release
    assert names.change_pod_number(batch) == number


@given(kind=kinds, name=prefixed | long)
def test_shortened_name_differs_from_every_name_that_was_not_shortened(kind: str, name: str) -> None:
    own = change_workload_name(GROUP_KINDS[kind], name, VERSION).removesuffix(f"--x--{VERSION}")
    assert (len(own) == 203) == (own != f"{BY_NAME[kind].change_workload_prefix}{name}")
