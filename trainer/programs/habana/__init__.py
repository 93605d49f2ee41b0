"""Habana's BERT in PyTorch (Model-References, PyTorch/nlp/bert)."""
