"""The functions of CEL that the sandbox adds to the library."""

from typing import Any

import pytest

from kube_sandbox.apiserver.schema import cel_rules

HOUR = {"rule": "timestamp('2026-01-01T22:30:00Z').getHours(self) >= 0", "message": "no zone"}
UNKNOWN = 'Invalid value: "string": unknown time zone {} evaluating rule: no zone'


def check(rule: dict[str, str], value: str) -> list[str]:
    """The messages about an object with this value."""
    schema: dict[str, Any] = {"properties": {"zone": {"type": "string", "x-kubernetes-validations": [rule]}}}
    return [each["message"] for each in cel_rules.check({"zone": value}, None, schema, blocked=False)]


@pytest.mark.parametrize(
    ("zone", "hour"),
    [("", 22), ("UTC", 22), ("Europe/Berlin", 23), ("Asia/Shanghai", 6), ("+01:00", 23), ("-03:45", 18), ("02:00", 0)],
)
def test_hour_is_that_of_the_zone(zone: str, hour: int) -> None:
    assert check({"rule": f"timestamp('2026-01-01T22:30:00Z').getHours(self) == {hour}"}, zone) == []


@pytest.mark.parametrize("zone", ["Mars/Base", "europe/berlin", "Asia"])
def test_unknown_zone_is_an_error_of_the_rule(zone: str) -> None:
    assert check(HOUR, zone) == [UNKNOWN.format(zone)]


def test_zone_that_is_a_path_is_an_error_of_the_rule() -> None:
    assert check(HOUR, "../UTC") == ['Invalid value: "string": time: invalid location name evaluating rule: no zone']
