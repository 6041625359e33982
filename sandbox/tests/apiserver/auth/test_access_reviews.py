"""Access reviews and token reviews."""

import pytest

from kube_sandbox.apiserver.attributes import Object, User
from kube_sandbox.apiserver.auth.access_reviews import AccessReviews
from kube_sandbox.apiserver.auth.authentication import Authenticator, administrator
from kube_sandbox.apiserver.auth.authorization import Authorizer
from kube_sandbox.apiserver.auth.tokens import ServiceAccountTokens
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, a_binding, a_role, a_rule, an_object, group, user

ACCOUNT = an_object("ServiceAccount", "bob", "apps")
JOE = User("joe", ("dev",))
TOKENS = ServiceAccountTokens(Stored(ACCOUNT))


@pytest.fixture
def reviews() -> AccessReviews:
    stored = Stored(
        ACCOUNT,
        a_role("r", a_rule("get", "pods"), {"nonResourceURLs": ["/x"], "verbs": ["get"]}),
        a_binding("b", "r", group("dev")),
    )
    return AccessReviews(Authenticator({"s3cret": administrator()}, TOKENS), Authorizer(stored))


def review(kind: str, **spec: object) -> Object:
    group_ = "authentication" if kind in ("TokenReview", "SelfSubjectReview") else "authorization"
    return {"apiVersion": f"{group_}.k8s.io/v1", "kind": kind, "metadata": {}, "spec": spec}


def test_self_subject_review_returns_the_user(reviews: AccessReviews) -> None:
    who = User("joe", ("dev",), "uid", {"scopes": ("a", "b")})
    answer = reviews.create(review("SelfSubjectReview"), who)
    assert answer["status"] == {
        "userInfo": {"username": "joe", "uid": "uid", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}}
    }


def test_self_subject_access_review_returns_the_decision_and_its_reason(reviews: AccessReviews) -> None:
    answer = reviews.create(
        review("SelfSubjectAccessReview", resourceAttributes={"verb": "get", "resource": "pods"}), JOE
    )
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "dev"',
    }
    url = review("SelfSubjectAccessReview", nonResourceAttributes={"verb": "get", "path": "/y"})
    assert reviews.create(url, JOE)["status"] == {"allowed": False}


def test_self_subject_rules_review_lists_resource_and_url_rules(reviews: AccessReviews) -> None:
    answer = reviews.create(review("SelfSubjectRulesReview", namespace="apps"), JOE)
    assert answer["status"] == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "incomplete": False,
    }


def test_subject_access_review_decides_for_another_user_or_group(reviews: AccessReviews) -> None:
    asked = {"verb": "get", "resource": "pods", "namespace": "apps"}
    about = review("SubjectAccessReview", user="ann", groups=["dev"], resourceAttributes=asked)
    assert reviews.create(about, JOE)["status"]["allowed"]
    about = review("SubjectAccessReview", user="ann", resourceAttributes=asked)
    assert not reviews.create(about, JOE)["status"]["allowed"]
    local = review("LocalSubjectAccessReview", groups=["dev"], resourceAttributes=asked)
    assert reviews.create(local, JOE, "apps")["status"]["allowed"]


def test_token_review_returns_user_and_audiences_or_an_error(reviews: AccessReviews) -> None:
    token = TOKENS.issue(ACCOUNT, audiences=["vault"], seconds=600)
    answer = reviews.create(review("TokenReview", token=token, audiences=["vault", "x"]), JOE)
    assert answer["status"]["authenticated"]
    assert answer["status"]["user"]["username"] == "system:serviceaccount:apps:bob"
    assert answer["status"]["audiences"] == ["vault"]
    answer = reviews.create(review("TokenReview", token="nope"), JOE)
    assert answer["status"] == {"user": {}, "error": "invalid bearer token"}
    answer = reviews.create(review("TokenReview", token=token), JOE)
    assert answer["status"]["error"] == (
        '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        '["https://kubernetes.default.svc.cluster.local"]]'
    )


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (review("TokenReview"), 400, "token is required for TokenReview in authentication"),
        (review("SelfSubjectRulesReview"), 400, "no namespace on request"),
        (
            review("SelfSubjectAccessReview"),
            422,
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: '
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            review("SubjectAccessReview", resourceAttributes={}, nonResourceAttributes={"verb": "get", "path": "/a"}),
            422,
            '.authorization.k8s.io "" is invalid: [spec.nonResourceAttributes: Invalid value: '
            '{"Path":"/a","Verb":"get"}: cannot be specified in combination with resourceAttributes, '
            'spec.user: Invalid value: "": at least one of user or group must be specified]',
        ),
        (
            review("LocalSubjectAccessReview", user="x", resourceAttributes={"namespace": "other"}),
            422,
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": '
            "must match metadata.namespace",
        ),
        (
            {**review("SelfSubjectAccessReview", resourceAttributes={}), "metadata": {"name": "x"}},
            422,
            '.authorization.k8s.io "" is invalid: metadata: Invalid value: {"name":"x"}: must be empty',
        ),
    ],
)
def test_review_with_missing_or_conflicting_fields_is_refused(
    reviews: AccessReviews, asked: Object, code: int, message: str
) -> None:
    with pytest.raises(StatusError) as refused:
        reviews.create(asked, JOE, "apps")
    assert (refused.value.code, refused.value.message) == (code, message)


def test_rules_review_with_a_missing_role_reports_an_evaluation_error() -> None:
    authorizer = Authorizer(Stored(a_binding("b", "gone", user("joe"))))
    answer = AccessReviews(Authenticator({}, TOKENS), authorizer).create(
        review("SelfSubjectRulesReview", namespace="apps"), JOE
    )
    assert answer["status"]["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'
