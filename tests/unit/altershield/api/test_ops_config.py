"""Validation and effect of the settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.ops_config import DEFAULTS, MAX_BATCH, Settings, effective, in_effect, problem
from altershield.api.ops_config_info import OpsConfigInfo, OpsConfigInfoSpec, OpsConfigInfoStatus
from kube_base.meta import ObjectMeta

SYSTEM = "altershieldoperator-system"


def setting(
    name: str = "branch",
    type_: str = "isBranch",
    *,
    enable: bool = True,
    content: str = "10",
    namespace: str = SYSTEM,
    status: OpsConfigInfoStatus | None = None,
) -> OpsConfigInfo:
    return OpsConfigInfo(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=OpsConfigInfoSpec(type=type_, enable=enable, content=content),
        status=status or OpsConfigInfoStatus(),
    )


def test_without_settings_the_defaults_are_in_effect() -> None:
    assert effective([], SYSTEM) == Settings(blocking=True, branch=False, content="10")


def test_defaults_are_valid() -> None:
    for name, spec in DEFAULTS.items():
        made = OpsConfigInfo(metadata=ObjectMeta(name=name, namespace=SYSTEM), spec=spec)
        assert problem(made, SYSTEM) is None


def test_valid_settings_are_in_effect() -> None:
    settings = [setting("blocking", "isBlockingUp", enable=False, content=""), setting(content="20%")]

    assert effective(settings, SYSTEM) == Settings(blocking=False, branch=True, content="20%")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (setting(namespace="shop"), "WrongNamespace"),
        (setting("other"), "UnknownName"),
        (setting(type_="isBanana"), "UnknownType"),
        (setting(type_="isBlockingUp"), "UnknownType"),
        *((setting(content=content), "InvalidContent") for content in ("", "0", "-1", "ten", "0%", "101%", "1.5", "٣")),
        *((setting(content=content), "InvalidContent") for content in ("%", "10%%", " 10", "1e3", "9" * 10)),
    ],
)
def test_invalid_setting_has_a_reason_and_the_default_stays_in_effect(wrong: OpsConfigInfo, reason: str) -> None:
    found = problem(wrong, SYSTEM)

    assert found is not None
    assert found.reason == reason
    assert effective([wrong], SYSTEM) == Settings()


def test_values_accepted_last_stay_in_effect_when_a_setting_becomes_invalid() -> None:
    wrong = setting(content="many", status=OpsConfigInfoStatus(enable=True, content="3"))

    assert effective([wrong], SYSTEM) == Settings(branch=True, content="3")


def test_invalid_status_is_ignored() -> None:
    wrong = setting(content="many", status=OpsConfigInfoStatus(enable=True, content="lots"))

    assert effective([wrong], SYSTEM) == Settings()


@pytest.mark.parametrize(
    ("content", "replicas", "batch"),
    [("10", 5, 5), ("10", 50, 10), ("10%", 5, 1), ("10%", 11, 2), ("100%", 7, 7), ("1%", 0, 1), ("5", 0, 1)],
)
def test_batch_size(content: str, replicas: int, batch: int) -> None:
    assert Settings(branch=True, content=content).batch_size(replicas) == batch
    assert Settings(branch=False, content=content).batch_size(replicas) == 1


@given(content=st.text(max_size=12) | st.from_regex(r"\A[0-9]{1,9}%?\Z"), replicas=st.integers(0, 10**6))
def test_batch_size_is_between_1_and_the_replicas(content: str, replicas: int) -> None:
    batch = Settings(branch=True, content=content).batch_size(replicas)

    assert 1 <= batch <= min(max(replicas, 1), MAX_BATCH)


# the setting `rollback`


def rollback(content: str = "20%", *, enable: bool = True, type_: str = "isRollback") -> OpsConfigInfo:
    return setting("rollback", type_, enable=enable, content=content)


@pytest.mark.parametrize(
    ("share", "pods", "overdue"),
    [
        ("20%", 0, 1),
        ("20%", 1, 1),
        ("20%", 5, 1),
        ("20%", 6, 2),
        ("20%", 10, 2),
        ("100%", 7, 7),
        ("1%", 1000, 10),
        ("3", 10, 3),
        ("3", 2, 2),
        ("1", 1000, 1),
        ("", 10, 2),
        ("lots", 10, 2),
    ],
)
def test_overdue_pods_that_end_a_release(share: str, pods: int, overdue: int) -> None:
    assert Settings(share=share).overdue(pods) == overdue


@given(share=st.text(max_size=12) | st.from_regex(r"\A[0-9]{1,9}%?\Z"), pods=st.integers(0, 10**6))
def test_overdue_pods_are_between_1_and_the_existing_pods(share: str, pods: int) -> None:
    assert 1 <= Settings(share=share).overdue(pods) <= max(pods, 1)


def test_rollback_is_on_by_default_with_20_percent() -> None:
    assert (Settings().rollback, Settings().share) == (True, "20%")
    assert effective([rollback("3")], SYSTEM) == Settings(share="3")


@pytest.mark.parametrize("content", ["", "20%", "nonsense"])
def test_disabled_rollback_is_valid_with_any_content(content: str) -> None:
    switched = rollback(content, enable=False)

    assert problem(switched, SYSTEM) is None
    assert not effective([switched], SYSTEM).rollback


@pytest.mark.parametrize("content", ["0", "0%", "101%", "many", "1.5", "-1"])
def test_invalid_share_is_refused(content: str) -> None:
    found = problem(rollback(content), SYSTEM)

    assert found is not None
    assert found.reason == "InvalidContent"
    assert effective([rollback(content)], SYSTEM) == Settings()


def test_missing_share_is_the_default() -> None:
    assert problem(rollback(""), SYSTEM) is None
    assert effective([rollback("")], SYSTEM).overdue(10) == 2
    assert in_effect(rollback(""), SYSTEM).content == "20%", "the status states it"


def test_rollback_setting_of_another_type_or_namespace_is_ignored() -> None:
    for wrong in (
        rollback(enable=False, type_="isBranch"),
        setting("rollback", "isRollback", enable=False, namespace="shop"),
    ):
        assert problem(wrong, SYSTEM) is not None
        assert effective([wrong], SYSTEM).rollback
