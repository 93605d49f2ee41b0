"""Choice and set-up of Beam's runners, and the worker processes of local ones."""
