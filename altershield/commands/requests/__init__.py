"""What a person decides about a release: `altershield approve`, `verdict`, `resume`, `repair`, `rollback`, `retry`; and
`altershield why`, which tells what there is to decide."""

from altershield.commands.requests.command import approve, repair, resume, retry, rollback, verdict
from altershield.commands.requests.why import why

__all__ = ["approve", "repair", "resume", "retry", "rollback", "verdict", "why"]
