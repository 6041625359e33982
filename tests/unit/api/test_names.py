import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import names
from altershield.workloads import ADAPTERS, change_workload_name

VERSION = "0123456789abcdef0123456789abcdef"

dns_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)
# Around the lengths from which names are cut: names that are drawn from a pattern are short.
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
def test_names_fit_and_give_their_number_back(workload: str, number: int) -> None:
    name = names.change_pod_name(names.change_workload_name("", workload, VERSION), number)
    assert len(name) <= 253
    assert names.change_pod_number(name) == number
    assert names.version_of(names.change_workload_name("", workload, VERSION)) == VERSION


@given(any_names)
def test_label_values_are_valid_and_short_names_stay(workload: str) -> None:
    value = names.label_value(workload)
    assert re.fullmatch(r"[a-z0-9A-Z]([-_.a-z0-9A-Z]{0,61}[a-z0-9A-Z])?", value)
    assert len(workload) > 63 or value == workload


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    one, other = "a" * 200 + "b", "a" * 200 + "c"
    assert names.label_value(one) != names.label_value(other)
    long = ["x" * 240 + "b", "x" * 240 + "c"]
    assert len({names.change_workload_name("", name, VERSION) for name in long}) == 2


@given(st.lists(st.tuples(st.sampled_from([each.resource.kind for each in ADAPTERS]), any_names), unique=True))
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


def test_a_service_account_has_the_user_name_that_kubernetes_gives_it() -> None:
    assert names.service_account_user("system", "altershield") == "system:serviceaccount:system:altershield"


@pytest.mark.parametrize("length", [1, 202])
def test_a_workload_name_up_to_202_characters_stays(length: int) -> None:
    assert names.change_workload_name("", "a" * length, VERSION) == f"{'a' * length}--x--{VERSION}"


@pytest.mark.parametrize("length", [203, 204, 253])
def test_a_longer_workload_name_is_cut_and_hashed_to_203_characters(length: int) -> None:
    own = names.change_workload_name("", "a" * length, VERSION).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("a{170}-[0-9a-f]{32}", own)
    assert len(names.change_pod_name(f"{own}--x--{VERSION}", 99_999_999)) == 253


def test_a_name_that_is_taken_is_hashed_however_short_it_is() -> None:
    own = names.change_workload_name("", "web", VERSION, taken=True).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("web-0{167}[0-9a-f]{32}", own)


@pytest.mark.parametrize("end", ["-.", "--", ".."])
def test_a_workload_name_that_is_cut_at_a_separator_loses_it_and_keeps_its_length(end: str) -> None:
    own = names.change_workload_name("", "a" * 168 + end + "b" * 60, VERSION).removesuffix(f"--x--{VERSION}")
    assert re.fullmatch("a{168}-00[0-9a-f]{32}", own)


def test_long_names_of_different_kinds_with_the_same_letters_stay_different() -> None:
    long = "a" * 220
    made = {names.change_workload_name(prefix, name, VERSION) for prefix, name in (("a.", long), ("", f"a.{long}"))}
    assert len(made) == 2


def test_names_of_parts_are_taken_from_the_end() -> None:
    workload = "a--x--b"
    release = names.change_workload_name("", workload, VERSION)
    assert names.version_of(release) == VERSION
    assert names.change_workload_of(names.change_pod_name(release, 7)) == release
    assert names.change_pod_number(names.change_pod_name(release, 12_345_678)) == 12_345_678
    assert names.change_pod_number(names.change_pod_name(release, 123_456_789)) == 0


def test_a_label_value_is_cut_and_hashed_from_64_characters_on() -> None:
    assert names.label_value("a" * 63) == "a" * 63
    assert re.fullmatch("a{52}-[0-9a-f]{10}", names.label_value("a" * 64))
    assert re.fullmatch("a{50}-[0-9a-f]{10}", names.label_value("a" * 50 + "-." + "b" * 20))


def test_a_version_has_only_hex_digits() -> None:
    assert not names.is_version("g" * 32)


def test_a_long_name_is_the_same_in_every_release_of_the_product() -> None:
    """An upgrade must find the ChangeWorkloads of the version before it."""
    own = names.change_workload_name("statefulset.", "a" * 200, VERSION).removesuffix(f"--x--{VERSION}")
    assert own == f"statefulset.{'a' * 158}-43ddb1fab9c1171000c88e562f788911"
    assert names.label_value("a" * 100) == f"{'a' * 52}-2816597888"
