"""SpanBERT's objective: masked spans of words, and targets of each span from the ids at its two ends."""
