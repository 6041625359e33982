"""Benchmarks. They install nothing and say what is missing."""
