"""`altershield sandbox`: a Kubernetes API with simulated nodes, and an AlterShield server, for tests."""

from command.sandbox.command import sandbox

__all__ = ["sandbox"]
