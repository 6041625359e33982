"""A release in steps, in the soak of its third step of four."""

from altershield.api.rollout import PassedStep, Phase, Rollout, RolloutStatus, Step

NOW = 1_700_000_000
ROLLOUT = Rollout(steps=(Step(1, 600), Step("5%"), Step("30%", 60, approval=True), Step("100%", 120)))
SOAKING = RolloutStatus(
    phase=Phase.SOAKING,
    step=3,
    steps=4,
    pods=3,
    updated=3,
    passed=3,
    step_time_unix=NOW - 50,
    soak_end_time_unix=NOW + 40,
    passed_steps=(PassedStep(1, 1, NOW - 900, NOW - 50, "ann"),),
)
