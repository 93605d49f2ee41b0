"""Part to documents of token ids.

``tokenizer`` is the seam, ``load`` makes a tokeniser of a file. ``wordpiece`` is BERT's of 2018: the step
and its specification, read top down: ``wordpiece`` (lines to documents), ``basic`` (text to words),
``pieces`` (words to ids), ``vocabulary`` (ids of a vocabulary file); Unicode 11.0's rules are
``bertdata.unicode.characters``.
"""
