"""Why a release cannot be made in steps, although its policy has some. Gatekeeper and reconciler give the same reason.
Pure functions.

The adapter names the obstacles in the spec of its kind (`Adapter.obstacle`).
"""

CREATED = "it is created"
NO_REPLICAS = "it has no replicas"
NO_STEPS = "all steps of its policy have a nodeSelector and no pods, which is for DaemonSets"


def obstacle(*, replicas: int, releaser: str = "", created: bool = False, has_steps: bool = True) -> str:
    """Why a release of a workload cannot be made in steps; empty: nothing but its spec may stand against it.
    `releaser`: which other controller releases it (`releasers.other_releaser`). `has_steps`: whether its policy has a
    step for its kind."""
    if created:
        return CREATED
    if replicas <= 0:
        return NO_REPLICAS
    return releaser or ("" if has_steps else NO_STEPS)
