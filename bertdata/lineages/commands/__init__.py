"""The commands that make a lineage's steps again, from the sources on."""
