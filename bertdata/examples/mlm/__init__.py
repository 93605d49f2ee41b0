"""RoBERTa's objective: masked words in blocks of one segment, and no next sentence."""
