"""The measurements of `python -m bench admissions` and others, in less time, on the cluster of the end-to-end tests."""

from tests.e2e.conftest import cluster as cluster
from tests.e2e.conftest import directory as directory
