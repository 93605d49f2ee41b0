"""The lineage of an artefact: every step that led to it, from the dump or the user's files on."""
