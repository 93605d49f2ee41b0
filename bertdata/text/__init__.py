"""Dump to parts: articles, clean paragraphs, sentences, evaluation articles."""
