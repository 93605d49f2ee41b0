"""Output of an extraction: files of articles, report, manifest, and articles for other days."""
