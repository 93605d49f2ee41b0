"""The articles that come out: files, report, manifest, and how they depend on the day."""
