"""RoBERTa's objective: predict masked words. Each example is a block of one segment."""
