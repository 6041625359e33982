import re

from hypothesis import given
from hypothesis import strategies as st

from altershield.api import names
from altershield.workloads import ADAPTERS, change_workload_name

VERSION = "0123456789abcdef0123456789abcdef"

dns_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)


def test_names_are_those_of_the_walkthrough() -> None:
    name = names.change_workload_name("", "sleep", VERSION)
    assert name == f"sleep--x--{VERSION}"
    assert names.change_pod_name(name, 3) == f"sleep--x--{VERSION}--x--3"


@given(dns_names, st.integers(1, 99_999_999))
def test_names_fit_and_give_their_number_back(workload: str, number: int) -> None:
    name = names.change_pod_name(names.change_workload_name("", workload, VERSION), number)
    assert len(name) <= 253
    assert names.change_pod_number(name) == number
    assert names.version_of(names.change_workload_name("", workload, VERSION)) == VERSION


@given(dns_names)
def test_label_values_are_valid_and_short_names_stay(workload: str) -> None:
    value = names.label_value(workload)
    assert re.fullmatch(r"[a-z0-9A-Z]([-_.a-z0-9A-Z]{0,61}[a-z0-9A-Z])?", value)
    assert len(workload) > 63 or value == workload


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    one, other = "a" * 200 + "b", "a" * 200 + "c"
    assert names.label_value(one) != names.label_value(other)
    long = ["x" * 240 + "b", "x" * 240 + "c"]
    assert len({names.change_workload_name("", name, VERSION) for name in long}) == 2


@given(st.lists(st.tuples(st.sampled_from([each.resource.kind for each in ADAPTERS]), dns_names), unique=True))
def test_no_two_workloads_share_the_name_of_a_record(workloads: list[tuple[str, str]]) -> None:
    taken = [("Deployment", "statefulset.web"), ("StatefulSet", "web"), *workloads]
    made = {change_workload_name(kind, name, VERSION) for kind, name in taken}
    assert len(made) == len(set(taken))


def test_a_foreign_name_has_no_number() -> None:
    for name in ("sleep", f"sleep--x--{VERSION}--x--", "a--x--b", "a--x--\u0665", "a--x--" + "9" * 100):
        assert names.change_pod_number(name) == 0


def test_a_version_is_32_hex_digits() -> None:
    assert names.is_version(VERSION)
    for label in ("", "Not_A_Version", VERSION.upper(), VERSION[1:], VERSION + "0", VERSION + "\n"):
        assert not names.is_version(label)
