"""Byte-level BPE of a tokenizer.json, with the same ids as version 0.23.3 of the tokenizers library.

``recognition`` reads the settings (see ``settings``) from the parsed file, or says why the file is not
supported. ``tokenizer`` is the tokeniser, which uses a C++ kernel (see ``kernel``). Its pure-Python version
consists of ``tokens`` (splits text into tokens), ``added`` (finds added tokens in a text) and ``pretokens``
(splits text into pre-tokens). The normalisation to NFC is in ``bertdata.unicode.composition``, and the
classes of characters are in ``bertdata.unicode.tables``.
"""
