"""What is done to an image: parameters, and what is drawn for a record."""
