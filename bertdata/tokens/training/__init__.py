"""Text to a new vocabulary: a vocabulary file (``wordpiece``) or a tokenizer.json (``train``)."""
