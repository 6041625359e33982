"""The Grafana dashboards, as code: `python -m dashboards` writes their JSON into the chart.

One file per dashboard says what it shows; `panels` and `board` know Grafana's JSON (its version 10 and newer).
"""
