"""Byte-level BPE of a tokenizer.json, to the id what the library tokenizers 0.23.3 makes of it.

``recognition`` reads the parsed file: ``settings``, or why the file is not known here. ``tokenizer`` is the
step. Its specification, read top down: ``tokens`` (text to tokens), ``added`` (added tokens in a text),
``pretokens`` (text to pre-tokens), ``merging`` (pre-tokens to ids); NFC is ``bertdata.unicode.composition``,
the classes of characters are ``bertdata.unicode.library``.
"""
