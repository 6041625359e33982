"""Tests of the reconciler's part of ReleaseWindows: the times of schedules, and the status."""
