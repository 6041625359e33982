"""The Grafana dashboards as code. `python -m dashboards` writes their JSON into the chart.

`admission`, `releases`, `gates`, `protections` and `health` each define one dashboard. `panels` and `board` build
Grafana's JSON (version 10 and newer).
"""
