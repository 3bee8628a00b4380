"""Changes of an image: their parameters, and the random numbers of a record."""
