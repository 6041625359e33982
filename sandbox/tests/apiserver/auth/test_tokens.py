"""Service account tokens and token requests."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth import token_requests
from kube_sandbox.apiserver.auth.tokens import AUDIENCES, ServiceAccountTokens, TokenError
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, an_object

ACCOUNT = an_object("ServiceAccount", "bob", "apps")
POD = an_object("Pod", "pod-1", "apps", spec={"serviceAccountName": "bob", "nodeName": "node-1"})
NODE = an_object("Node", "node-1")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stored() -> Stored:
    return Stored(ACCOUNT, POD, NODE)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def tokens(stored: Stored, clock: Clock, key: rsa.RSAPrivateKey) -> ServiceAccountTokens:
    return ServiceAccountTokens(stored, key=key, clock=clock)


def issue(tokens: ServiceAccountTokens, **bound: Object) -> str:
    return tokens.issue(ACCOUNT, audiences=AUDIENCES, seconds=600, bound=bound)


def segment(token: str, index: int) -> Object:
    part = token.split(".")[index]
    decoded: Object = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


def test_token_has_the_claims_of_a_bound_service_account_token(tokens: ServiceAccountTokens) -> None:
    claims = segment(issue(tokens), 1)
    assert claims.pop("jti")
    assert claims == {
        "aud": list(AUDIENCES),
        "iss": AUDIENCES[0],
        "sub": "system:serviceaccount:apps:bob",
        "iat": 1_000_000,
        "nbf": 1_000_000,
        "exp": 1_000_600,
        "kubernetes.io": {"namespace": "apps", "serviceaccount": {"name": "bob", "uid": "uid-of-bob"}},
    }


def test_verified_token_gives_user_groups_extra_and_audiences(tokens: ServiceAccountTokens) -> None:
    token = issue(tokens, pod=POD, node=NODE)
    found = tokens.verify(token)
    assert found is not None
    user, audiences = found
    assert user.name == "system:serviceaccount:apps:bob"
    assert user.uid == "uid-of-bob"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("pod-1",)
    assert user.extra["authentication.kubernetes.io/node-uid"] == ("uid-of-node-1",)
    assert user.extra["authentication.kubernetes.io/credential-id"] == (f"JTI={segment(token, 1)['jti']}",)
    assert audiences == list(AUDIENCES)


def test_expired_token_is_refused_after_the_leeway(tokens: ServiceAccountTokens, clock: Clock) -> None:
    token = issue(tokens)
    clock.now += 660
    assert tokens.verify(token)
    clock.now += 1
    with pytest.raises(TokenError, match="service account token has expired"):
        tokens.verify(token)


def test_token_of_a_deleted_or_recreated_service_account_is_refused(
    tokens: ServiceAccountTokens, stored: Stored
) -> None:
    token = issue(tokens)
    stored.objects.remove(ACCOUNT)
    with pytest.raises(TokenError, match='serviceaccounts "bob" not found'):
        tokens.verify(token)
    reborn = an_object("ServiceAccount", "bob", "apps")
    reborn["metadata"]["uid"] = "another"
    stored.add(reborn)
    with pytest.raises(TokenError, match=r"service account UID \(another\) does not match claim \(uid-of-bob\)"):
        tokens.verify(token)


def test_token_bound_to_a_deleted_pod_is_refused(tokens: ServiceAccountTokens, stored: Stored) -> None:
    token = issue(tokens, pod=POD, node=NODE)
    stored.objects.remove(NODE)
    assert tokens.verify(token)
    stored.objects.remove(POD)
    with pytest.raises(TokenError, match="service account token has been invalidated"):
        tokens.verify(token)


def test_token_for_another_audience_is_refused(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ACCOUNT, audiences=["vault"], seconds=600)
    with pytest.raises(TokenError, match=r'token audiences \["vault"\] is invalid for the target audiences'):
        tokens.verify(token)
    found = tokens.verify(token, ["vault", "other"])
    assert found is not None
    assert found[1] == ["vault"]


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "a.b.c.d", "ä.b.c", "." * 70_000, "a.b." + "A" * 342])
def test_token_that_this_server_did_not_sign_is_not_recognized(tokens: ServiceAccountTokens, token: str) -> None:
    assert tokens.verify(token) is None


def test_token_with_changed_claims_or_signature_is_not_recognized(tokens: ServiceAccountTokens) -> None:
    header, claims, signature = issue(tokens).split(".")
    changed = base64.urlsafe_b64encode(b'{"sub":"root"}').rstrip(b"=").decode()
    assert tokens.verify(f"{header}.{changed}.{signature}") is None
    assert tokens.verify(f"{header}.{claims}.{'A' * len(signature)}") is None


def a_request(tokens: ServiceAccountTokens, stored: Stored, **request: Object) -> Object:
    return token_requests.create(tokens, stored, "apps", "bob", request)


def test_token_request_returns_a_valid_token(tokens: ServiceAccountTokens, stored: Stored) -> None:
    answer = a_request(tokens, stored, spec={})
    assert answer["kind"] == "TokenRequest"
    assert answer["metadata"]["uid"] == "uid-of-bob"
    assert answer["spec"] == {"audiences": list(AUDIENCES), "expirationSeconds": 3600, "boundObjectRef": None}
    assert tokens.verify(answer["status"]["token"])
    assert answer["status"]["expirationTimestamp"].endswith("Z")


def test_token_request_bound_to_a_pod_has_pod_and_node_claims(tokens: ServiceAccountTokens, stored: Stored) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "uid-of-pod-1"}
    answer = a_request(tokens, stored, spec={"boundObjectRef": reference, "audiences": ["x"]})
    claims = segment(answer["status"]["token"], 1)["kubernetes.io"]
    assert claims["pod"] == {"name": "pod-1", "uid": "uid-of-pod-1"}
    assert claims["node"] == {"name": "node-1", "uid": "uid-of-node-1"}


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 10}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: '
            "may not specify a duration less than 10 minutes",
        ),
        (
            {"spec": {"expirationSeconds": 1 << 33}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 8589934592: '
            "may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"metadata": {"name": "x"}},
            422,
            'TokenRequest.authentication.k8s.io "bob" is invalid: metadata.name: Invalid value: "x": '
            "must match the service account name if specified",
        ),
        (
            {"metadata": {"uid": "x"}},
            409,
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bob": the UID in the token request '
            "(x) does not match the UID of the service account (uid-of-bob)",
        ),
        ({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "no"}}}, 404, 'pods "no" not found'),
        (
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Foo", "name": "no"}}},
            400,
            "cannot bind token to object of type /v1, Kind=Foo",
        ),
        (
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "old"}}},
            409,
            'Operation cannot be fulfilled on Pod "pod-1": the UID in the bound object reference (old) does not match '
            "the UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
def test_invalid_token_request_is_refused_as_by_kube_apiserver(
    tokens: ServiceAccountTokens, stored: Stored, request_: Object, code: int, message: str
) -> None:
    with pytest.raises(StatusError) as refused:
        a_request(tokens, stored, **request_)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_token_request_for_a_missing_service_account_is_not_found(tokens: ServiceAccountTokens, stored: Stored) -> None:
    stored.objects.remove(ACCOUNT)
    with pytest.raises(StatusError, match='serviceaccounts "bob" not found') as refused:
        a_request(tokens, stored, spec={})
    assert refused.value.code == 404


def test_token_request_bound_to_a_pod_of_another_service_account_is_refused(
    tokens: ServiceAccountTokens, stored: Stored
) -> None:
    stored.add(an_object("Pod", "other", "apps", spec={"serviceAccountName": "eve"}))
    with pytest.raises(StatusError, match='cannot bind token for serviceaccount "bob" to pod running with different'):
        a_request(tokens, stored, spec={"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "other"}})
