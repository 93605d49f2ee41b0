"""Hugging Face's example programs for fine-tuning."""
