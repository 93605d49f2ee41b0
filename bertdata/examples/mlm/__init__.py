"""RoBERTa's objective: predict masked words in blocks of one segment, without next sentences."""
