"""wikiextractor 3.1.0 as a package: the Python engine of its extractor."""
