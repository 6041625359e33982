"""Carries out what was decided about a release."""
