"""SQuAD's fine-tuning examples: a question and a piece of its context, in which to find the answer."""
