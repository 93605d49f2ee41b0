"""Byte-level BPE of a tokenizer.json, to the id what the library tokenizers 0.23.3 makes of it.

``recognition`` reads the parsed file: the settings of this module's tokeniser, or why it does not know the file.
``tokenizer`` is the step. Its specification, read top down: ``tokens`` (text to tokens), ``added`` (added tokens
in a text), ``pretokens`` (text to pre-tokens), ``merging`` (pre-tokens to ids). NFC and character classes are in
``bertdata.unicode.composition`` and ``library``.
"""
