"""All ValidatingAdmissionPolicies. The API server evaluates them. So they hold whether a gatekeeper runs or not, and in
namespaces that are not governed."""

from altershield.install.account_policies import account_policies
from altershield.install.admission_policy import RESOURCES, Object
from altershield.install.user_policies import user_policies

__all__ = ["RESOURCES", "policies"]


def policies(account: str, check: str) -> list[Object]:
    """The policies and their bindings. `account`: the user name of AlterShield's service account. `check`: that of the
    service account of `helm test`."""
    return [*user_policies(account), *account_policies(account, check)]
