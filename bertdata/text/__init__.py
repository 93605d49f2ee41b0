"""Extracted articles to text that the tokeniser reads: one sentence a line, a blank line after each article.

The stages are plain functions from bytes to bytes (frames, cleaning, evaluation, parts; nvidia,
nvidia_sharding); segment strings them together for a recipe. Where sentences end is decided by a
splitter that the caller hands in.
"""
