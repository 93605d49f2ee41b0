"""Division of a model over devices that cannot hold it alone."""
