"""The nodes, as decisions about pods read them."""

from collections.abc import Mapping
from typing import Protocol


class Nodes(Protocol):
    """The states of nodes, as the groups read them."""

    def node_ready(self, node: str) -> bool:
        """Whether a pod on this node can be up: False if the node is known to be not ready, True if it is unknown."""

    def node_lost(self, node: str) -> bool:
        """Whether the node does not exist or is not ready."""

    def node_ready_at(self, node: str) -> float:
        """Since when the node is ready, Unix seconds; 0 if it is not ready or the time is not known."""

    def node_labels(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of all nodes, by name."""
