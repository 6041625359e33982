import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import names
from altershield.workloads import ADAPTERS, change_workload_name
from tests.support.workloads import GROUP_KINDS

VERSION = "0123456789abcdef0123456789abcdef"

dns_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)
# Lengths around the limit from which names are cut, because names drawn from a pattern are short.
long_names = st.builds(
    lambda name, length: (name * 253)[:length].rstrip("-.") or "a",
    dns_names,
    st.integers(195, 253) | st.integers(55, 70),
)
any_names = dns_names | long_names


def test_names_are_those_of_the_walkthrough() -> None:
    name = names.change_workload_name("", "sleep", VERSION)
    assert name == f"sleep--x--{VERSION}"
    assert names.change_pod_name(name, 3) == f"sleep--x--{VERSION}--x--3"


@given(any_names, st.integers(1, 99_999_999))
def test_names_are_valid_and_contain_their_parts(workload: str, number: int) -> None:
    name = names.change_pod_name(names.change_workload_name("", workload, VERSION), number)
    assert len(name) <= 253
    assert names.change_pod_number(name) == number
    assert names.version_in(names.change_workload_name("", workload, VERSION)) == VERSION


@given(any_names)
def test_label_values_are_valid_and_short_names_are_unchanged(workload: str) -> None:
    value = names.label_value(workload)
    assert re.fullmatch(r"[a-z0-9A-Z]([-_.a-z0-9A-Z]{0,61}[a-z0-9A-Z])?", value)
    assert len(workload) > 63 or value == workload


def test_long_names_that_differ_at_the_end_give_different_names() -> None:
    one, other = "a" * 200 + "b", "a" * 200 + "c"
    assert names.label_value(one) != names.label_value(other)
    long = ["x" * 240 + "b", "x" * 240 + "c"]
    assert len({names.change_workload_name("", name, VERSION) for name in long}) == 2


@given(st.lists(st.tuples(st.sampled_from([each.resource.kind for each in ADAPTERS]), any_names), unique=True))
def test_two_workloads_never_have_the_same_change_workload_name(workloads: list[tuple[str, str]]) -> None:
    taken = [("Deployment", "statefulset.web"), ("StatefulSet", "web"), *workloads]
    made = {change_workload_name(GROUP_KINDS[kind], name, VERSION) for kind, name in taken}
    assert len(made) == len(set(taken))


def test_number_of_another_name_is_0() -> None:
    for name in ("sleep", f"sleep--x--{VERSION}--x--", "a--x--b", "a--x--\u0665", "a--x--" + "9" * 100):
        assert names.change_pod_number(name) == 0


def test_version_is_32_hex_digits() -> None:
    assert names.is_version(VERSION)
    for label in ("", "Not_A_Version", VERSION.upper(), VERSION[1:], VERSION + "0", VERSION + "\n"):
        assert not names.is_version(label)


def test_a_service_account_has_the_user_name_that_kubernetes_gives_it() -> None:
    assert names.service_account_user("system", "altershield") == "system:serviceaccount:system:altershield"


@pytest.mark.parametrize("length", [1, 202])
def test_workload_name_up_to_202_characters_is_unchanged(length: int) -> None:
    assert names.change_workload_name("", "a" * length, VERSION) == f"{'a' * length}--x--{VERSION}"


@pytest.mark.parametrize("length", [203, 204, 253])
def test_longer_workload_name_is_cut_and_hashed_to_203_characters(length: int) -> None:
    own = names.change_workload_name("", "a" * length, VERSION).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("a{170}-[0-9a-f]{32}", own)
    assert len(names.change_pod_name(f"{own}--x--{VERSION}", 99_999_999)) == 253


def test_taken_name_is_hashed_even_if_it_is_short() -> None:
    own = names.change_workload_name("", "web", VERSION, taken=True).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("web-0{167}[0-9a-f]{32}", own)


@pytest.mark.parametrize("end", ["-.", "--", ".."])
def test_workload_name_cut_at_a_separator_loses_it_and_keeps_its_length(end: str) -> None:
    own = names.change_workload_name("", "a" * 168 + end + "b" * 60, VERSION).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("a{168}-00[0-9a-f]{32}", own)


def test_long_names_of_different_kinds_with_the_same_letters_differ() -> None:
    long = "a" * 220
    made = {names.change_workload_name(prefix, name, VERSION) for prefix, name in (("a.", long), ("", f"a.{long}"))}
    assert len(made) == 2


def test_parts_are_taken_from_the_end_of_a_name() -> None:
    workload = "a--x--b"
    release = names.change_workload_name("", workload, VERSION)
    assert names.version_in(release) == VERSION
    assert names.change_workload_of(names.change_pod_name(release, 7)) == release
    assert names.change_pod_number(names.change_pod_name(release, 12_345_678)) == 12_345_678
    assert names.change_pod_number(names.change_pod_name(release, 123_456_789)) == 0


def test_label_value_is_cut_and_hashed_from_64_characters_on() -> None:
    assert names.label_value("a" * 63) == "a" * 63
    assert re.fullmatch("a{52}-[0-9a-f]{10}", names.label_value("a" * 64))
    assert re.fullmatch("a{50}-[0-9a-f]{10}", names.label_value("a" * 50 + "-." + "b" * 20))


def test_version_has_only_hex_digits() -> None:
    assert not names.is_version("g" * 32)


def test_name_of_a_long_workload_does_not_change_between_product_releases() -> None:
    """After an upgrade, AlterShield must find the existing ChangeWorkloads."""
    own = names.change_workload_name("statefulset.", "a" * 200, VERSION).removesuffix(f"--x--{VERSION}")
    assert own == f"statefulset.{'a' * 158}-43ddb1fab9c1171000c88e562f788911"
    assert names.label_value("a" * 100) == f"{'a' * 52}-2816597888"
