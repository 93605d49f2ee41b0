"""fairseq's binarised text: lines of ids in ``.bin``, their sizes in ``.idx``, symbols in ``dict.txt``."""
