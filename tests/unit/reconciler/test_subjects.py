"""Every subject starts with the manager, and queues its own keys."""

import asyncio
from pathlib import Path

import pytest

from altershield.api.policy import DefensePolicy, DefensePolicySpec
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.meta import ObjectMeta
from reconciler.manager import SUBJECTS, Manager
from reconciler.options import Options
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.urls import allowed_hosts
from reconciler.receivers import file as receivers
from reconciler.receivers.file import Delivery, ReceiversFile

from .filled import namespace, put

POLICY = DefensePolicy(ObjectMeta("own", "default", resource_version="1"), DefensePolicySpec())


def test_names_and_watches_of_subjects_are_their_own() -> None:
    assert len({subject.name for subject in SUBJECTS}) == len(SUBJECTS)
    watched = [watch.resource for subject in SUBJECTS for watch in subject.watches]
    assert len(set(watched)) == len(watched)


async def test_policies_are_queued_when_the_receivers_change_and_when_a_leader_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_PERIOD", 0.01)
    path = tmp_path / "receivers.yaml"
    path.write_text("receivers: []")
    file = ReceiversFile(path)
    async with Client(Configuration(host="https://127.0.0.1")) as client, Outbound(allowed_hosts([])) as outbound:
        manager = Manager(client, Options(), delivery=Delivery(file, outbound))
        put(manager.caches, namespace(), POLICY)
        queue = manager.queues["policies"]
        assert await queue.get() == ("default", "own")
        queue.done(("default", "own"))
        path.write_text("{receivers: [], cluster: c1}")
        following = asyncio.create_task(file.follow())
        assert await queue.get() == ("default", "own")
        following.cancel()
