"""A dump read: its file's text, blocks of whole pages, what its head says."""
