"""Tests of the controller of PodUnavailableBudgets."""
