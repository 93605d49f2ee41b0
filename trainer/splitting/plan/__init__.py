"""Plans for split models: which layers form a stage, what is sharded, how many micro-batches there are."""
