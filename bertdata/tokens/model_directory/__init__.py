"""Tokeniser of a model's directory in Hugging Face's form, with the ids of transformers' AutoTokenizer.

``files`` reads the directory's files. ``tokenizer_class`` finds the class that AutoTokenizer would use.
``classes`` knows the steps of each class. ``added_tokens`` collects the tokens that are added. ``reader``
combines all of this to a tokenizer.json. ``tests/soak/tokenizer_fuzz.py`` compares the results with
transformers 5.23.
"""
