"""ChangePods: batches of pods under verification, each taken to its end."""
