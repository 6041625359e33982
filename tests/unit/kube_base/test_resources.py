from kube_base.resources import CLUSTER_ROLES, DEPLOYMENTS, NAMESPACES, PODS


def test_paths_are_those_of_the_kubernetes_api() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("default", "a", "status") == "/api/v1/namespaces/default/pods/a/status"
    assert DEPLOYMENTS.path("default") == "/apis/apps/v1/namespaces/default/deployments"
    assert NAMESPACES.path("", "default") == "/api/v1/namespaces/default"
    assert CLUSTER_ROLES.path("", "system:node").endswith("/clusterroles/system:node")


def test_special_characters_of_names_are_escaped() -> None:
    assert PODS.path("../x", "a/b?c#d") == "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc%23d"
