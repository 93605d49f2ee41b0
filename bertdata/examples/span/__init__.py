"""SpanBERT's objective: predict masked spans of words. Ids in a span are also predicted from the two tokens
at its ends.
"""
