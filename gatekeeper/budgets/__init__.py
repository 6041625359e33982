"""Decides about disruptions of pods, with I/O: reads objects that the caches lack, and records a disruption before its
request passes."""
