"""Everything that touches files and processes: storage, output directories, downloads, worker pools."""
