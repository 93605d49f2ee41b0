"""Learning tasks: masked words, next sentence, span boundaries, SQuAD and classification."""
