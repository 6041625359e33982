"""How many runs the random tests of releases make."""

from hypothesis import HealthCheck, settings

LONG = "long"
"""The Hypothesis profile with which they make twenty times as many runs, others each time: `tests/conftest.py`."""


def random_runs(examples: int, steps: int) -> settings:
    """The settings of a random test: the same runs each time, so that a failure in CI comes from the change; with the
    profile `long`, other ones. `steps`: at most, of each run."""
    is_long = settings.default == settings.get_profile(LONG)
    return settings(
        max_examples=examples * 20 if is_long else examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not is_long,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
