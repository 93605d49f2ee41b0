"""Tokenisers, which turn text into documents of token ids.

``tokenizer`` is the interface of all tokenisers, and ``load`` makes a tokeniser from a file. ``bpe`` is
byte-level BPE. ``library_tokenizer`` runs every other tokenizer.json with Hugging Face's library.
``model_directory`` reads the tokeniser of a model's directory. ``training`` learns new vocabularies.

BERT's WordPiece of 2018 is in four modules: ``wordpiece`` turns lines into documents, ``basic`` splits text
into words, ``pieces`` splits words into tokens, and ``vocabulary`` reads the ids of a vocabulary file. The
properties of characters are those of Unicode 11.0 (``bertdata.unicode.characters``).
"""
