"""Files on any file system, assets, worker processes, and how directories are committed."""
