"""The tests of this folder run in simulated time. Each check takes 5 s."""

import pytest

from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.server import AlterShieldServer
from support.altershield import Caller, new_node


@pytest.fixture
def server(slow: AlterShieldServer) -> AlterShieldServer:
    return slow


@pytest.fixture
def caller(slow_caller: Caller) -> Caller:
    return slow_caller


@pytest.fixture
async def node(caller: Caller) -> Node:
    """A new node, whose PRE check runs."""
    return await new_node(caller)
