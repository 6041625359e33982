"""What every process needs: options, start-up, signals, logs, metrics, the health port, and child processes."""
