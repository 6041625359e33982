"""What the settings mean, and which ones count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.kinds import OpsConfigInfo, OpsConfigInfoSpec, OpsConfigInfoStatus
from altershield.api.meta import ObjectMeta
from altershield.api.ops_config import DEFAULTS, MAX_BATCH, Settings, effective, problem

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


def test_without_settings_the_defaults_count() -> None:
    assert effective([], SYSTEM) == Settings(blocking=True, branch=False, content="10")


def test_the_defaults_are_valid_themselves() -> None:
    for name, spec in DEFAULTS.items():
        made = OpsConfigInfo(metadata=ObjectMeta(name=name, namespace=SYSTEM), spec=spec)
        assert problem(made, SYSTEM) is None


def test_valid_settings_count() -> None:
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
def test_a_wrong_setting_says_why_and_leaves_the_default(wrong: OpsConfigInfo, reason: str) -> None:
    found = problem(wrong, SYSTEM)

    assert found is not None
    assert found.reason == reason
    assert effective([wrong], SYSTEM) == Settings()


def test_a_setting_gone_wrong_leaves_what_was_accepted_last() -> None:
    wrong = setting(content="many", status=OpsConfigInfoStatus(enable=True, content="3"))

    assert effective([wrong], SYSTEM) == Settings(branch=True, content="3")


def test_a_status_that_somebody_spoilt_does_not_count() -> None:
    wrong = setting(content="many", status=OpsConfigInfoStatus(enable=True, content="lots"))

    assert effective([wrong], SYSTEM) == Settings()


@pytest.mark.parametrize(
    ("content", "replicas", "batch"),
    [("10", 5, 5), ("10", 50, 10), ("10%", 5, 1), ("10%", 11, 2), ("100%", 7, 7), ("1%", 0, 1), ("5", 0, 1)],
)
def test_batches(content: str, replicas: int, batch: int) -> None:
    assert Settings(branch=True, content=content).batch(replicas) == batch
    assert Settings(branch=False, content=content).batch(replicas) == 1


@given(content=st.text(max_size=12) | st.from_regex(r"\A[0-9]{1,9}%?\Z"), replicas=st.integers(0, 10**6))
def test_a_batch_is_never_empty_nor_larger_than_the_replicas(content: str, replicas: int) -> None:
    batch = Settings(branch=True, content=content).batch(replicas)

    assert 1 <= batch <= min(max(replicas, 1), MAX_BATCH)
