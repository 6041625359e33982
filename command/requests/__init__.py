"""What a person decides about a release: `altershield approve`, `verdict`, `resume`, `repair`, `rollback`, `retry`,
`promote`, `hold`; and `altershield why`, which tells what there is to decide, or who refuses the deletion of a pod."""

from command.requests.command import approve, hold, promote, repair, resume, retry, rollback, verdict
from command.requests.why import EXIT_REFUSED, why

__all__ = ["EXIT_REFUSED", "approve", "hold", "promote", "repair", "resume", "retry", "rollback", "verdict", "why"]
