"""What is to be made, and making it: the unit of work of the command line and of Beam."""
