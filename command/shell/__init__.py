"""What the command does for a shell that completes its words."""
