"""ALBERT's objective: predict masked n-grams of words, and whether the two segments were swapped."""
