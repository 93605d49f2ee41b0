"""Questions with a span of their context, in which the answer is to be found (SQuAD)."""
