"""ChangePods: batches of pods under verification."""
