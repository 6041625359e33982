"""The kinds of release gates: the objects that say when a release may begin."""
