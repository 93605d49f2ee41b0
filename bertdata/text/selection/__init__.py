"""Documents that are left out of the parts, or held out of training, by their text."""
