"""All ValidatingAdmissionPolicies. The API server evaluates them. So they apply whether a gatekeeper runs or not, and
also in namespaces that are not governed."""

from command.install.account_policies import account_policies
from command.install.admission_policy import RESOURCES, Object
from command.install.breaker_policies import breaker_policies
from command.install.deletion_policies import deletion_policies
from command.install.duties_policies import duties_policies
from command.install.gate_policies import gate_policies
from command.install.user_policies import user_policies

__all__ = ["RESOURCES", "deletion_policies", "own_policies", "policies"]


def policies(account: str, check: str) -> list[Object]:
    """The policies and their bindings, as the chart installs them by default. `account`, `check`: the user names of the
    service accounts of AlterShield and of `helm test`."""
    return [*own_policies(account, account, check), *deletion_policies()]


def own_policies(gatekeeper: str, reconciler: str, check: str) -> list[Object]:
    """The policies about AlterShield's own objects and accounts. `gatekeeper`, `reconciler`: the user names of their
    service accounts, which may be the same. `check`: the user name of the service account of `helm test`."""
    return [
        *user_policies(reconciler),
        *duties_policies(reconciler),
        *account_policies(reconciler, check),
        *breaker_policies(gatekeeper, reconciler),
        *gate_policies(gatekeeper, reconciler),
    ]
