"""All ValidatingAdmissionPolicies. The API server evaluates them. So they hold whether a gatekeeper runs or not, and in
namespaces that are not governed."""

from altershield.install.account_policies import account_policies
from altershield.install.admission_policy import RESOURCES, Object
from altershield.install.deletion_policies import deletion_policies
from altershield.install.user_policies import user_policies

__all__ = ["RESOURCES", "deletion_policies", "policies", "release_policies"]


def policies(account: str, check: str) -> list[Object]:
    """The policies and their bindings, as the chart installs them by default. `account`: the user name of AlterShield's
    service account. `check`: that of the service account of `helm test`."""
    return [*release_policies(account, check), *deletion_policies()]


def release_policies(account: str, check: str) -> list[Object]:
    """Those about releases and AlterShield's own account."""
    return [*user_policies(account), *account_policies(account, check)]
