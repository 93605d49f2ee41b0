"""Byte-level BPE of a tokenizer.json, with the same ids as version 0.23.3 of the tokenizers library.

``recognition`` turns the parsed file into the settings of ``settings``, or says why the file is not
supported. ``tokenizer`` is the tokeniser. Its pure-Python version consists of ``tokens`` (text to tokens),
``added`` (added tokens in a text) and ``pretokens`` (text to pre-tokens). NFC is in
``bertdata.unicode.composition``, and the classes of characters are in ``bertdata.unicode.tables``.
"""
