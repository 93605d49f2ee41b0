"""A MediaWiki dump to extracted articles."""
