"""The task of classifying texts or pairs of texts, or of giving each a score."""
