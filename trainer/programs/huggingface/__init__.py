"""The examples of Hugging Face's transformers."""
