"""A dataset's examples in the forms that NumPy, torch, TensorFlow and Hugging Face's datasets expect."""
