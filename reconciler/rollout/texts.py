"""Sentences about releases in steps."""

from altershield.api.rollout import RolloutStatus


def step_text(status: RolloutStatus) -> str:
    """`step 2 of 4`."""
    return f"step {status.step} of {status.steps}"
