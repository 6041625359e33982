"""What AlterShield costs in a fleet: `python -m bench.fleet`."""
