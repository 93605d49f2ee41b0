"""TensorFlow's tensor bundle (V2), read and written without TensorFlow: NAME.index and NAME.data-I-of-N."""
