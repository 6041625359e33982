"""Options of the sandbox's tests. This folder is on the import path: tests import their helpers as `support`."""

from hypothesis import HealthCheck, settings

# a machine that is busy with another test is no finding
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
