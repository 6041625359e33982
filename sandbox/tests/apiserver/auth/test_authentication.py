"""Authentication by static tokens, service account tokens and client certificates."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kube_base.pki import Authority
from kube_sandbox.apiserver.attributes import User
from kube_sandbox.apiserver.auth.authentication import ANONYMOUS, Authenticator, administrator
from kube_sandbox.apiserver.auth.tokens import AUDIENCES, ServiceAccountTokens
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, an_object

ACCOUNT = an_object("ServiceAccount", "bob", "apps")
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def tokens(key: rsa.RSAPrivateKey) -> ServiceAccountTokens:
    return ServiceAccountTokens(Stored(ACCOUNT), key=key)


@pytest.fixture
def authenticator(tokens: ServiceAccountTokens) -> Authenticator:
    return Authenticator({"s3cret": administrator()}, tokens)


def test_static_token_authenticates_its_user(authenticator: Authenticator) -> None:
    user = authenticator.authenticate("Bearer s3cret")
    assert user == User("kubernetes-admin", ("system:masters", "system:authenticated"))


def test_service_account_token_authenticates_the_service_account(
    authenticator: Authenticator, tokens: ServiceAccountTokens
) -> None:
    token = tokens.issue(ACCOUNT, audiences=AUDIENCES, seconds=600)
    assert authenticator.authenticate(f"bearer {token} ").name == "system:serviceaccount:apps:bob"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer  s3cret", "Basic Zm9vOmJhcg=="])
def test_request_without_a_bearer_token_is_anonymous(authenticator: Authenticator, header: str | None) -> None:
    assert authenticator.authenticate(header) == ANONYMOUS


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer a.b.c", "Bearer s3cret2"])
def test_wrong_token_is_unauthorized(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(StatusError, match=r"^Unauthorized$") as refused:
        authenticator.authenticate(header)
    assert refused.value.status["reason"] == "Unauthorized"
    assert refused.value.code == 401


def test_client_certificate_gives_user_and_groups(authenticator: Authenticator) -> None:
    pair = Authority.create("ca", lifetime=DAY).issue("joe", organizations=["dev", "ops"], lifetime=DAY)
    certificate = x509.load_pem_x509_certificate(pair.certificate).public_bytes(serialization.Encoding.DER)
    user = authenticator.authenticate("Bearer wrong", certificate)
    assert (user.name, user.groups) == ("joe", ("dev", "ops", "system:authenticated"))
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
