"""Fields of a sample beside its image, which follow its geometry: masks, images, points, texts."""
