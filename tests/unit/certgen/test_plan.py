"""Single plans: from the stored contents, the published bundles and the time to the next contents and the reasons."""

import datetime
from collections.abc import Sequence

import pytest
from cryptography import x509

from certgen import certificates
from certgen.contents import Contents
from certgen.errors import CertificateError
from certgen.lifetimes import Lifetimes
from certgen.plan import Plan, Reason, new_authority, new_leaf, plan, without_retired
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.errors import UsageError
from kube_base.pki import Authority
from kube_base.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

HOUR = datetime.timedelta(hours=1)
DAY = 24 * HOUR
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LIFETIMES = Lifetimes(authority=90 * DAY, leaf=9 * DAY, settle=HOUR)
HOSTS = ("altershield.system.svc",)


def published(bundle: bytes, since: datetime.datetime | None = START) -> list[WebhookConfiguration]:
    """Both configurations, with `bundle` in all webhooks."""
    return [
        WebhookConfiguration(resource, "altershield", "1", {"one": bundle, "two": bundle}, since)
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    ]


def planned(
    contents: Contents,
    configurations: Sequence[WebhookConfiguration],
    now: datetime.datetime = START,
    hosts: Sequence[str] = HOSTS,
) -> Plan:
    return plan(contents, configurations, hosts=hosts, lifetimes=LIFETIMES, now=now)


@pytest.fixture
def first() -> Contents:
    """The contents of the first plan."""
    return planned(Contents(), published(b"", None)).contents


@pytest.fixture
def second(first: Contents) -> Contents:
    """The first contents with a second CA, created an hour later, which has signed nothing."""
    return new_authority(first, LIFETIMES, START + HOUR)


def test_without_contents_the_first_plan_has_a_ca_and_a_serving_certificate() -> None:
    made = planned(Contents(), published(b"", None))
    assert made.reasons == (Reason.NO_AUTHORITY, Reason.NO_LEAF)
    assert made.contents.leaf is not None
    assert made.contents.issuer == made.contents.authorities[0].certificate
    assert made.contents.leaf.hosts == {"altershield.system.svc"}
    assert made.contents.leaf.expires == START + LIFETIMES.leaf


def test_without_webhook_configurations_there_is_a_serving_certificate() -> None:
    assert planned(Contents(), []).contents.serving is not None


def test_second_plan_of_the_same_contents_has_no_reasons(first: Contents) -> None:
    again = planned(first, published(first.bundle))
    assert again.reasons == ()
    assert again.contents == first


@pytest.mark.parametrize(
    ("age", "reasons"), [(6 * DAY - HOUR, ()), (6 * DAY, (Reason.LEAF_DUE,)), (9 * DAY, (Reason.LEAF_EXPIRED,))]
)
def test_serving_certificate_is_renewed_after_two_thirds_of_its_lifetime(
    first: Contents, age: datetime.timedelta, reasons: tuple[Reason, ...]
) -> None:
    renewed = planned(first, published(first.bundle), START + age)
    assert renewed.reasons == reasons
    assert renewed.contents.issuer == first.issuer
    if reasons:
        assert renewed.contents.leaf
        assert renewed.contents.leaf.expires == START + age + LIFETIMES.leaf


def test_certificate_is_renewed_although_another_client_overwrites_the_bundles(first: Contents) -> None:
    now = START + 6 * DAY
    assert planned(first, published(first.bundle, now), now).reasons == (Reason.LEAF_DUE,)
    assert planned(first, published(b"-", now), now).reasons == (Reason.LEAF_DUE,)


def test_requeue_at_is_when_the_serving_certificate_is_due(first: Contents) -> None:
    assert planned(first, published(first.bundle), START + HOUR).requeue_at == START + 6 * DAY


def test_ca_gets_a_successor_after_two_thirds_of_its_lifetime(first: Contents) -> None:
    now = START + 60 * DAY
    contents = planned(first, published(first.bundle), now - HOUR).contents
    due = planned(contents, published(contents.bundle), now)
    assert due.reasons == (Reason.AUTHORITY_DUE,)
    assert due.contents.trusted[1:] == contents.trusted
    assert due.contents.leaf == contents.leaf
    assert planned(due.contents, published(contents.bundle), now).reasons == ()


def test_new_ca_signs_after_the_settling_time_and_the_old_key_is_deleted(second: Contents) -> None:
    since = START + 2 * HOUR
    waiting = planned(second, published(second.bundle, since), since + HOUR / 2)
    assert waiting.reasons == ()
    assert waiting.requeue_at == since + HOUR
    moved = planned(second, published(second.bundle, since), waiting.requeue_at)
    assert moved.reasons == (Reason.AUTHORITY_PUBLISHED,)
    assert moved.contents.issuer == second.trusted[0]
    assert len(moved.contents.authorities) == 1
    assert moved.contents.trusted == second.trusted


def test_new_ca_does_not_sign_while_one_configuration_lacks_it(first: Contents, second: Contents) -> None:
    now = START + 10 * HOUR
    mutating, _ = published(second.bundle)
    _, validating = published(first.bundle)
    assert planned(second, [mutating, validating], now).reasons == ()


def test_new_ca_does_not_sign_while_one_webhook_of_a_configuration_lacks_it(first: Contents, second: Contents) -> None:
    webhooks = {"one": second.bundle, "two": first.bundle}
    configuration = WebhookConfiguration(MUTATING_WEBHOOKS, "altershield", "1", webhooks, START)
    assert planned(second, [configuration], START + 10 * HOUR).reasons == ()


def test_serving_certificate_does_not_outlive_its_ca(first: Contents) -> None:
    now = START + 85 * DAY
    contents = new_leaf(first, published(first.bundle), hosts=HOSTS, lifetimes=LIFETIMES, now=now)
    assert contents.leaf
    assert contents.leaf.expires == START + 90 * DAY
    again = planned(contents, published(first.bundle), now + 4 * DAY)
    assert again.reasons == (Reason.AUTHORITY_DUE,)  # no renewal: the CA expires at the same time


def test_expired_ca_is_removed(second: Contents) -> None:
    settled = planned(second, published(second.bundle), START + 2 * HOUR).contents
    late = planned(settled, published(settled.bundle), START + 90 * DAY)
    assert Reason.AUTHORITY_EXPIRED in late.reasons
    assert second.trusted[1] not in late.contents.trusted


def test_when_all_certificates_have_expired_new_ones_are_created_at_once(first: Contents) -> None:
    now = START + 3650 * DAY
    renewed = planned(first, published(first.bundle), now)
    assert renewed.reasons == (Reason.AUTHORITY_EXPIRED, Reason.NO_AUTHORITY, Reason.NO_LEAF)
    assert renewed.contents.serving is not None
    assert renewed.contents.trusted == (renewed.contents.issuer,)


def test_after_loss_of_the_secret_published_cas_stay_trusted_and_the_new_ca_signs_when_settled(first: Contents) -> None:
    lost = planned(Contents(), published(first.bundle), START + HOUR)
    assert lost.reasons == (Reason.AUTHORITY_RECOVERED, Reason.NO_AUTHORITY)
    assert lost.contents.leaf is None
    assert lost.contents.trusted[1:] == first.trusted
    bundle, since = lost.contents.bundle, START + HOUR
    assert planned(lost.contents, published(bundle, since), since + HOUR / 2).reasons == ()
    assert planned(lost.contents, published(bundle, since), since + HOUR).reasons == (Reason.NO_LEAF,)


def test_published_ca_of_others_is_not_added() -> None:
    foreign = Authority.create("somebody else's", lifetime=DAY, now=START).pair.certificate
    made = planned(Contents(), published(foreign))
    assert made.reasons == (Reason.NO_AUTHORITY, Reason.NO_LEAF)
    assert len(made.contents.trusted) == 1


def test_serving_certificate_of_an_unknown_ca_is_replaced(first: Contents) -> None:
    stranger = Authority.create("altershield-ca-1", lifetime=DAY, now=START).issue("x", hosts=HOSTS, lifetime=DAY)
    contents = Contents(certificates.Leaf.load(stranger), first.authorities)
    assert planned(contents, published(first.bundle), START + HOUR).reasons == (Reason.NO_LEAF,)


def test_certificate_of_a_ca_with_a_lost_key_stays_until_the_next_ca_is_settled(first: Contents) -> None:
    contents = Contents(first.leaf, (), first.trusted)
    healed = planned(contents, published(first.bundle), START + HOUR)
    assert healed.reasons == (Reason.NO_AUTHORITY,)
    assert healed.contents.leaf == first.leaf
    settled = planned(healed.contents, published(healed.contents.bundle), START + 2 * HOUR)
    assert settled.reasons == (Reason.AUTHORITY_PUBLISHED,)


def test_missing_host_is_added_to_the_hosts_of_other_replicas(first: Contents) -> None:
    more = planned(first, published(first.bundle), START + HOUR, ["127.0.0.1", "localhost"])
    assert more.reasons == (Reason.HOSTS_MISSING,)
    assert more.contents.leaf
    assert more.contents.leaf.hosts == {"127.0.0.1", "localhost", *HOSTS}
    assert planned(more.contents, published(first.bundle), START + HOUR).reasons == ()
    renewed = planned(more.contents, published(first.bundle), START + 7 * DAY).contents
    assert renewed.leaf
    assert renewed.leaf.hosts == set(HOSTS)


def test_replicas_with_different_lifetimes_do_not_replace_each_others_certificates(first: Contents) -> None:
    longer = Lifetimes(authority=900 * DAY, leaf=90 * DAY, settle=HOUR)
    contents = first
    for hour in (1, 2):
        contents = plan(
            contents, published(contents.bundle), hosts=HOSTS, lifetimes=longer, now=START + hour * HOUR
        ).contents
    assert contents != first
    assert planned(contents, published(contents.bundle), START + 2 * HOUR).reasons == ()
    contents = new_leaf(contents, published(contents.bundle), hosts=HOSTS, lifetimes=LIFETIMES, now=START + 2 * HOUR)
    renewed = plan(contents, published(contents.bundle), hosts=HOSTS, lifetimes=longer, now=START + 2 * HOUR)
    assert renewed.reasons == (Reason.LEAF_DUE,)
    assert planned(renewed.contents, published(contents.bundle), START + 2 * HOUR).reasons == ()


def test_new_ca_is_refused_when_eight_are_trusted(first: Contents) -> None:
    contents = first
    for _ in range(7):
        contents = new_authority(contents, LIFETIMES, START)
    with pytest.raises(CertificateError, match="8 CAs are trusted already"):
        new_authority(contents, LIFETIMES, START)


def test_repeatedly_damaged_secret_has_at_most_eight_cas(first: Contents) -> None:
    contents = first
    for _ in range(20):
        contents = planned(Contents(None, (), contents.trusted), published(contents.bundle), START + HOUR).contents
        assert len(contents.trusted) <= 8


def test_without_retired_removes_the_cas_that_cannot_sign(second: Contents) -> None:
    settled = planned(second, published(second.bundle), START + 2 * HOUR).contents
    assert without_retired(settled).trusted == (settled.issuer,)


@pytest.mark.parametrize(
    ("authority", "leaf", "settle"), [(90, 31, 1), (90, 30, 11), (90, 30, 0), (90, 0, 0), (-90, -30, -10)]
)
def test_lifetimes_too_short_for_a_rotation_are_refused(authority: int, leaf: int, settle: int) -> None:
    with pytest.raises(UsageError):
        Lifetimes(authority * HOUR, leaf * HOUR, settle * HOUR)


# CAs that are published but missing in the Secret


def ca(days: float, name: str = "altershield-ca-0") -> Authority:
    """A CA that is valid for `days` days from START."""
    return Authority.create(name, lifetime=days * DAY, now=START)


def certificate(authority: Authority) -> x509.Certificate:
    return certificates.certificates(authority.pair.certificate)[0]


def test_recovered_ca_is_trusted_beside_the_retired_cas(first: Contents) -> None:
    retired = certificate(ca(50))
    lost = planned(Contents(None, (), (retired,)), published(first.bundle), START + HOUR)
    assert Reason.AUTHORITY_RECOVERED in lost.reasons
    assert lost.contents.retired == (retired, *first.trusted)


def test_up_to_the_limit_the_lost_cas_that_expire_last_are_recovered(first: Contents) -> None:
    retired = tuple(certificate(ca(50)) for _ in range(6))
    lost = [ca(days) for days in (40, 60, 50)]
    contents = Contents(None, first.authorities, retired)
    bundle = b"".join(each.pair.certificate for each in lost)
    assert planned(contents, published(bundle), START).contents.retired == (*retired, certificate(lost[1]))


def test_lost_cas_are_not_recovered_when_eight_are_trusted(first: Contents) -> None:
    contents = Contents(None, first.authorities, tuple(certificate(ca(50)) for _ in range(8)))
    bundle = b"".join(ca(days).pair.certificate for days in (40, 60))
    found = planned(contents, published(bundle), START)
    assert Reason.AUTHORITY_RECOVERED not in found.reasons
    assert found.contents.retired == contents.retired


def test_removed_ca_that_is_still_published_is_not_recovered(second: Contents) -> None:
    settled = without_retired(planned(second, published(second.bundle), START + 2 * HOUR).contents)
    found = planned(settled, published(second.bundle), START + 2 * HOUR)
    assert found.reasons == ()
    assert found.contents == settled


def test_lost_ca_of_the_serving_certificate_is_recovered(first: Contents) -> None:
    found = planned(Contents(first.leaf), published(first.bundle), START + HOUR)
    assert found.reasons == (Reason.AUTHORITY_RECOVERED, Reason.NO_AUTHORITY)
    assert found.contents.serving == first.leaf


def test_published_expired_ca_and_certificate_of_no_ca_are_not_recovered(first: Contents) -> None:
    expired = ca(1)
    serving = first.authorities[0].issue("altershield-ca-1", hosts=HOSTS, lifetime=9 * DAY, now=START)
    bundle = expired.pair.certificate + serving.certificate.split(b"-----END CERTIFICATE-----")[0]
    bundle += b"-----END CERTIFICATE-----\n"
    assert planned(Contents(), published(bundle), START + 2 * DAY).reasons == (Reason.NO_AUTHORITY, Reason.NO_LEAF)


# limits


def test_ca_is_expired_in_the_second_of_its_not_after(first: Contents) -> None:
    found = planned(first, published(first.bundle), START + 90 * DAY)
    assert found.reasons == (Reason.AUTHORITY_EXPIRED, Reason.NO_AUTHORITY, Reason.NO_LEAF)


def test_retired_cas_count_toward_the_limit_of_trusted_cas(first: Contents) -> None:
    contents = Contents(first.leaf, first.authorities, tuple(certificate(ca(days)) for days in range(40, 47)))
    with pytest.raises(CertificateError, match="wait until 2026-02-10T00:00:00Z"):
        new_authority(contents, LIFETIMES, START)


def test_with_more_cas_than_the_limit_retired_cas_are_removed() -> None:
    due = tuple(ca(30) for _ in range(9))
    contents = Contents(None, due, tuple(certificate(ca(30)) for _ in range(3)))
    found = planned(contents, [], START)
    assert (len(found.contents.authorities) + len(found.contents.retired)) == 10


def test_renewal_on_request_is_refused_while_no_ca_is_settled(first: Contents) -> None:
    unsettled = published(first.bundle, None)
    with pytest.raises(CertificateError, match="try again in 3600 s"):
        new_leaf(Contents(None, first.authorities), unsettled, hosts=HOSTS, lifetimes=LIFETIMES, now=START)


def test_expired_certificate_is_replaced_by_the_ca_that_most_configurations_contain(second: Contents) -> None:
    newest = second.authorities[0]
    unsettled = published(newest.pair.certificate, None)
    found = planned(second, unsettled, START + LIFETIMES.leaf)
    assert found.reasons == (Reason.LEAF_EXPIRED,)
    assert found.contents.issuer == newest.certificate


def test_certificate_of_the_newest_ca_is_not_replaced_by_an_older_ca(second: Contents) -> None:
    newest, oldest = second.authorities
    leaf = certificates.Leaf.load(newest.issue(HOSTS[0], hosts=HOSTS, lifetime=9 * DAY, now=START))
    found = planned(Contents(leaf, second.authorities), published(oldest.pair.certificate), START + 5 * HOUR)
    assert found.reasons == ()


def test_certificate_that_lacks_one_of_several_hosts_gets_it(first: Contents) -> None:
    found = planned(first, published(first.bundle), START + HOUR, ["new.example.com", *HOSTS])
    assert found.reasons == (Reason.HOSTS_MISSING,)
    leaf = found.contents.leaf
    assert leaf
    assert certificates.common_name(leaf.chain[0]) == "new.example.com"  # the first of the present hosts
    names = leaf.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert len(list(names)) == 2


def test_retired_cas_stay_trusted_when_the_certificate_is_renewed(first: Contents) -> None:
    retired = certificate(ca(50))
    contents = Contents(first.leaf, first.authorities, (retired,))
    renewed = planned(contents, published(contents.bundle), START + 6 * DAY)
    assert renewed.reasons == (Reason.LEAF_DUE,)
    assert renewed.contents.retired == (retired,)


# requeue_at


@pytest.mark.parametrize(("days", "again"), [(45, 45), (89, 60)])
def test_requeue_at_is_when_a_retired_ca_expires_or_the_present_ca_is_due(
    first: Contents, days: int, again: int
) -> None:
    """No certificate is signed here: more configurations contain another CA than ours."""
    retired = ca(days)
    waiting = Contents(None, first.authorities, (certificate(retired),))
    found = planned(waiting, published(retired.pair.certificate), START + 2 * HOUR)
    assert found.requeue_at == START + again * DAY


def test_requeue_at_is_the_expiry_of_a_certificate_that_cannot_be_renewed(first: Contents) -> None:
    healed = planned(Contents(first.leaf, (), first.trusted), published(first.bundle, None), START + HOUR).contents
    assert planned(healed, published(first.bundle, None), START + 7 * DAY).requeue_at == START + 9 * DAY
