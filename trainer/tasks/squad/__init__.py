"""The task SQuAD: find the answer to a question in a text."""
