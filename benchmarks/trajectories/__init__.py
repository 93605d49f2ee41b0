"""The trainings of original programs that were recorded, trained again and compared loss by loss."""
