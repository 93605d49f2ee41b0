"""The trainer that consumes bertdata's datasets."""
