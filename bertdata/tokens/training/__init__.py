"""Learns new vocabularies from text.

``wordpiece`` makes vocabulary files, and ``train`` makes tokenizer.json files.
"""
