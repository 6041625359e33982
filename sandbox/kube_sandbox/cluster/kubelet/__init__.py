"""What a node does with its pods."""
