"""From the dump to the parts: extraction, cleaning, sentences, evaluation set, parts."""
