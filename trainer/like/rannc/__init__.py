"""RaNNC's programs."""
