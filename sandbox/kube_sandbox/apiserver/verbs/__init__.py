"""What each verb does: get, list, watch, create, update, patch, delete."""
