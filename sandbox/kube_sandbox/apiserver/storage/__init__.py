"""The stored objects, the served resources, and the selectors that choose objects."""
