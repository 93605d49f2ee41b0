"""Learns new vocabularies from text: ``wordpiece`` makes vocabulary files, ``train`` makes tokenizer.json
files.
"""
