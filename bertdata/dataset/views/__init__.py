"""The examples of a dataset as NumPy arrays, and as datasets of torch, TensorFlow and Hugging Face."""
