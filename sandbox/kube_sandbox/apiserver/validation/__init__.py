"""Validation of built-in kinds, one module per API group or part."""
