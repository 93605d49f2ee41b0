"""Dataset directories: write, find, read and verify shards and their manifest."""
