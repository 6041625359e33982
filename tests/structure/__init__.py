"""Measures of the code's structure, and their bounds. `python -m tests.structure` prints them."""
