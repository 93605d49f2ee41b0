"""Select documents by their text: leave out duplicates and evaluation texts, hold out a share."""
