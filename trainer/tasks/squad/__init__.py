"""The task SQuAD, which is to find the answer to a question in a text."""
