"""The code that every process needs: options, startup, signals, logs, metrics, health port and child processes."""
