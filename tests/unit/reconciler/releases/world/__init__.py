"""A simulated cluster with one workload of any kind, its pods, ChangeWorkloads and ChangePods, and a reconciler that
carries out the decisions.

Times: `t` is the true time in Unix seconds. The clocks of the reconciler, the API server and the kubelets may differ
from it.
"""

from .cluster import KINDS, fingerprint, template
from .executor import Conflicted, Killed
from .pods import NAMESPACE, SimPod, infos
from .reconciler import World

__all__ = ["KINDS", "NAMESPACE", "Conflicted", "Killed", "SimPod", "World", "fingerprint", "infos", "template"]
