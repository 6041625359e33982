"""Rotation over time: gatekeepers never serve a certificate that an API server does not trust."""

import base64
import datetime

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from certgen import certificates
from certgen.lifetimes import Lifetimes
from certgen.plan import new_authority
from certgen.webhook_configurations import KINDS
from kube_base.resources import SECRETS
from tests.unit.certgen.world import SECOND, SECRET, TWO_MINUTES, Cluster, Replica, World, reconciler

YEARS = Lifetimes()


@pytest.mark.parametrize(
    ("lifetimes", "lag", "until"),
    [
        (TWO_MINUTES, 8 * SECOND, datetime.timedelta(hours=1)),
        (YEARS, 50 * SECOND, datetime.timedelta(days=5 * 365)),
        (Lifetimes(authority=9 * SECOND, leaf=3 * SECOND, settle=SECOND), 0 * SECOND, 60 * SECOND),
    ],
    ids=["two minutes", "years", "shortest"],
)
def test_served_certificate_is_always_trusted(
    lifetimes: Lifetimes, lag: datetime.timedelta, until: datetime.timedelta
) -> None:
    cluster = Cluster.installed(lifetimes, lag)
    world, end = cluster.world, cluster.world.now + until
    leaves, authorities = set(), set()
    turns = 0
    while world.now < end:
        outcome = cluster.replicas[turns % 3].reconcile()
        cluster.observe()
        cluster.check()
        for moment in (world.now + lag, outcome.requeue_at):
            world.now = max(world.now, moment)
            cluster.check()
        contents = world.contents
        leaves.add(contents.leaf and contents.leaf.certificate)
        authorities.update(contents.trusted)
        assert len(contents.trusted) <= 2
        turns += 1
    # each is replaced after two thirds of its lifetime
    assert len(leaves) >= until / lifetimes.leaf * 1.4
    assert len(authorities) >= until / lifetimes.authority * 1.4
    assert turns <= 12 * until / lifetimes.leaf, "requeue_at was too early"


def test_old_ca_stays_in_the_bundles_until_it_expires() -> None:
    cluster = Cluster.installed()
    world = cluster.world
    [old] = world.contents.trusted
    outcome = cluster.replicas[0].reconcile()
    while old in world.contents.trusted:
        assert all(world.bundle(resource).endswith(certificates.pem([old])) for resource in KINDS)
        world.now = outcome.requeue_at
        outcome = cluster.replicas[0].reconcile()
    assert world.now == old.not_valid_after_utc
    assert all(certificates.pem([old]) not in world.bundle(resource) for resource in KINDS)


def test_new_ca_does_not_sign_before_the_settling_time_in_all_configurations() -> None:
    cluster = Cluster.installed()
    world = cluster.world
    first = world.contents.issuer
    world.replace(new_authority(world.contents, TWO_MINUTES, world.now))
    cluster.replicas[0].reconcile()
    published = world.now
    for seconds in range(9):
        world.now = published + seconds * SECOND
        cluster.replicas[1].reconcile()
        assert world.contents.issuer == first
    world.now = published + TWO_MINUTES.settle
    cluster.replicas[2].reconcile()
    assert world.contents.issuer == world.contents.trusted[0] != first


def test_new_ca_that_only_one_configuration_contains_does_not_sign() -> None:
    cluster = Cluster.installed()
    world = cluster.world
    first = world.contents.issuer
    world.replace(new_authority(world.contents, TWO_MINUTES, world.now))
    while world.bundle(KINDS[0]) != world.contents.bundle:
        cluster.replicas[0].step()
    cluster.replicas[0].crash()
    world.now += TWO_MINUTES.settle
    cluster.replicas[1].reconcile()
    assert world.contents.issuer == first
    assert world.bundle(KINDS[1]) == world.contents.bundle


@pytest.mark.parametrize("requests", range(1, 7))
@pytest.mark.parametrize("news", [True, False], ids=["with a CA to publish", "without"])
def test_replica_that_was_suspended_between_two_requests_reverts_nothing(requests: int, news: bool) -> None:
    cluster = Cluster.installed()
    world, suspended = cluster.world, cluster.replicas[0]
    if news:
        world.replace(new_authority(world.contents, TWO_MINUTES, world.now))
    for _ in range(requests):
        suspended.step()
    world.replace(new_authority(world.contents, TWO_MINUTES, world.now))
    for _ in range(2):
        cluster.replicas[1].reconcile()
        cluster.observe()
        world.now += TWO_MINUTES.settle
        cluster.check()
    assert world.contents.issuer == world.contents.trusted[0]
    while not suspended.step():
        cluster.observe()
        cluster.check()
    assert {world.bundle(resource) for resource in KINDS} == {world.contents.bundle}


def test_replicas_that_create_the_secret_at_the_same_time_end_with_one_ca() -> None:
    world = World()
    for resource in KINDS:
        world.publish(resource, b"", "helm")
    replicas = [Replica(reconciler(world)) for _ in range(5)]
    for _ in range(20):
        for replica in replicas:
            replica.step()
    assert len(world.contents.trusted) == 1
    assert {world.bundle(resource) for resource in KINDS} == {world.contents.bundle}
    version = world.objects[SECRETS.plural, SECRET]["metadata"]["resourceVersion"]
    for replica in replicas:
        assert not replica.reconcile().wrote
    assert world.objects[SECRETS.plural, SECRET]["metadata"]["resourceVersion"] == version


class Rotation(RuleBasedStateMachine):
    """Three replicas that are interleaved and killed at any request, while people delete and damage the Secret."""

    damages = 0

    @initialize()
    def install(self) -> None:
        self.cluster = Cluster.installed()
        self.world = self.cluster.world
        self.idle = dict.fromkeys(range(3), self.world.now)

    @rule(replica=st.integers(0, 2), steps=st.integers(1, 5))
    def work(self, replica: int, steps: int) -> None:
        for _ in range(steps):
            if self.cluster.replicas[replica].step():
                self.idle[replica] = self.world.now
            self.cluster.observe()

    @rule(replica=st.integers(0, 2))
    def kill(self, replica: int) -> None:
        self.cluster.replicas[replica].crash()

    @rule(seconds=st.floats(0.1, 4))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds * SECOND
        for number, replica in enumerate(self.cluster.replicas):
            if self.world.now - self.idle[number] > 25 * SECOND:  # a replica is slow, but it is not dead
                replica.reconcile()
                self.idle[number] = self.world.now
                self.cluster.observe()

    @rule()
    @precondition(lambda self: len(self.world.contents.trusted) < 4)
    def ask_for_an_authority(self) -> None:
        if (SECRETS.plural, SECRET) in self.world.objects and self.world.contents.authorities:
            self.world.replace(new_authority(self.world.contents, TWO_MINUTES, self.world.now))

    @rule(key=st.sampled_from(["tls.crt", "tls.key", "ca.crt", "ca.key"]), value=st.binary(max_size=20))
    @precondition(lambda self: self.damages < 3 and len(self.world.contents.trusted) < 4)
    def damage_the_secret(self, key: str, value: bytes) -> None:
        self.damages += 1
        secret = self.world.objects.get((SECRETS.plural, SECRET))
        if secret is not None:
            data = secret["data"] | {key: base64.b64encode(value).decode()}
            self.world.store(SECRETS, secret | {"data": data})

    @rule()
    @precondition(lambda self: self.damages < 3 and len(self.world.contents.trusted) < 4)
    def delete_the_secret(self) -> None:
        self.damages += 1
        self.world.objects.pop((SECRETS.plural, SECRET), None)

    @invariant()
    def everything_served_is_trusted(self) -> None:
        self.cluster.check()

    def teardown(self) -> None:
        """Without further changes, all replicas agree and write nothing more."""
        if not hasattr(self, "cluster"):
            return
        for _ in range(4):
            for replica in self.cluster.replicas:
                replica.reconcile()
                self.cluster.observe()
            self.cluster.check()
            self.world.now += TWO_MINUTES.settle
        contents = self.world.contents
        assert contents.serving is not None
        assert {self.world.bundle(resource) for resource in KINDS} == {contents.bundle}


TestRotation = Rotation.TestCase
TestRotation.settings = settings(
    max_examples=40, stateful_step_count=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
