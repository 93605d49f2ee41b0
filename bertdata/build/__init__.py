"""Plans of datasets, and the tasks that create their shards. The command line and Beam use the same ones."""
