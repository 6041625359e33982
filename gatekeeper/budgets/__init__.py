"""Decides about disruptions of pods with I/O: reads what caches lack, and stores records before requests pass."""
