"""Benchmarks: `python -m bench` lists the questions that they answer, `python -m bench QUESTION` answers one.

`questions/` has one file for each question. `harness/` is what they share, `availability/` runs gatekeepers and
reconcilers that are killed and cut off, `simulated/` is the API of a cluster of any size. The benchmarks install no
programs: one that lacks a program names it and stops.
"""
