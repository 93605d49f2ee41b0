"""Readers of text records from plain text, JSON, CSV, Parquet and Arrow files, compressed or not."""
