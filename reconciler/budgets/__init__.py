"""The status of PodUnavailableBudgets: their numbers, and how long records of admitted disruptions are kept."""
