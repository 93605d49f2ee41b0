"""Dataset directories: functions that write, find, read and verify shards and their manifest."""
