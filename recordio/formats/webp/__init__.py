"""WebP through libwebp: a region of a still image, without Python and without the GIL."""
