"""Unit tests of the sandbox's API, in the folders of `kube_sandbox/apiserver`."""
