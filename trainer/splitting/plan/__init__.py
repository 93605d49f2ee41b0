"""The division of a model that one device cannot hold."""
