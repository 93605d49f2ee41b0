"""Read a dump: decompress its file, cut it into blocks of whole pages, parse the site's description."""
