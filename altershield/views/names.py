"""Names and texts of objects, as they are shown."""

from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload


def resource_name(workload: Workload) -> str:
    """`KIND.GROUP/NAME` in lower case, as kubectl prints objects of several types."""
    return f"{workload.kind.lower()}.{BY_KIND[workload.kind].resource.group}/{workload.metadata.name}"


def printable(text: str) -> str:
    """Without control characters, which must not reach the terminal: users write the messages of verdicts."""
    return "".join(c if c.isprintable() else " " for c in text)
