"""Classification: the task that gives each text, or pair of texts, a label or a score."""
