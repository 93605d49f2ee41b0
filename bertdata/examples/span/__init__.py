"""SpanBERT's objective: predict masked spans of words, also from the tokens at the two ends of each span."""
