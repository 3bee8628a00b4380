"""JPEG through libjpeg-turbo: a region, at a scale, with an entropy decoder of our own."""
