"""Tokenisers: turn text into documents of token ids.

``tokenizer`` is the interface of a tokeniser, and ``load`` makes a tokeniser from a file. BERT's WordPiece of
2018 is in ``wordpiece`` (lines to documents), ``basic`` (text to words), ``pieces`` (words to ids) and
``vocabulary`` (ids of a vocabulary file), with the rules of Unicode 11.0 in ``bertdata.unicode.characters``.
``bpe`` is byte-level BPE, ``library_tokenizer`` runs every other tokenizer.json with Hugging Face's library,
``model_directory`` reads a model's directory, and ``training`` learns new vocabularies.
"""
