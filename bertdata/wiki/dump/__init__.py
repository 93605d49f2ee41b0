"""Read a dump: the text of its file, blocks of whole pages, and the facts in its head."""
