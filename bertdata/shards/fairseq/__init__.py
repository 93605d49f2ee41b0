"""fairseq's binarised text: lines of ids in ``.bin``, their sizes in ``.idx``, symbols in ``dict.txt``."""

OBJECTIVE = "mlm"
"""The objective of lines as blocks that are masked at load."""
