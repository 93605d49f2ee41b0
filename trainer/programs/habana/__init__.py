"""Habana's BERT programs for PyTorch (Model-References, PyTorch/nlp/bert)."""
