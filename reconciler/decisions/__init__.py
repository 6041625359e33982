"""What is decided: pure functions of a state, of what is observed and of the time. Nothing here does I/O."""
