"""ALBERT's objective: masked n-grams of words in two segments, and whether the segments are swapped."""
