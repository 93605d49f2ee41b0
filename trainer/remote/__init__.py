"""Runs whose directory is a URL: names, claim, download, and upload of a local working directory."""
