"""Models that no single device holds: layers in stages, weights in shards, and the plans for both."""
