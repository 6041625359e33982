"""Validation of built-in kinds, with one module per API group or part of an object."""
