"""Floor 6: MXNet's packing tool, under its name."""
