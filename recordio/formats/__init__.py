"""Encoded images to rows of pixels; one module or room for each kind of image."""
