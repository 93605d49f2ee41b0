__version__ = "stand-in"
