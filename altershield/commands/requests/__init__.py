"""What a person decides about a release: `altershield approve`, `verdict`, `resume`, `repair`, `rollback`, `retry`."""

from altershield.commands.requests.command import approve, repair, resume, retry, rollback, verdict

__all__ = ["approve", "repair", "resume", "retry", "rollback", "verdict"]
