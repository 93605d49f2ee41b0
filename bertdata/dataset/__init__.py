"""A directory of shards: its manifest, writing, finding, reading and verifying it."""
