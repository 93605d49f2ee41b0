"""Fine-tuning examples for SQuAD: a question, and a part of the context that contains its answer or not."""
