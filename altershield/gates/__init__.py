"""Whether a release may begin, as gatekeeper, reconciler and commands agree on it. Pure functions.

Each gate is one file with a function that gives the objects that are closed for a release. `judge.py` lists the gates.
"""
