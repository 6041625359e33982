"""How a release in steps proceeds. Pure functions."""
