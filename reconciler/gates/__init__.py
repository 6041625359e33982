"""ReleaseWindows: whether a window is accepted, and the times that follow from its schedules."""
