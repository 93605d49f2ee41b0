"""wikiextractor 3.1.0, called as a package. This is the Python engine of the extractor "3.1.0"."""
