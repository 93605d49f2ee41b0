"""Plans of datasets, and the units of work that make their shards, for the command line and for Beam."""
