"""ReleaseLimits: counts releases and failures, and makes a ReleaseFreeze when a fuse trips."""
