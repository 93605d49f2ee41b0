"""Records of text in files of any container: plain text, JSON lines, CSV, Parquet, Arrow, or compressed."""
