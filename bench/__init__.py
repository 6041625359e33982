"""Benchmarks. They do not install programs; a benchmark that lacks one names it and stops."""
