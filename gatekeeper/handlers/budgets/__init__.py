"""The handlers of disruptions of pods: PodUnavailableBudgets decide."""
