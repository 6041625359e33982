"""The simulated namespace controller."""
