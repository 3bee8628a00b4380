"""Packs as material: the commands over whole packs, one module for each group."""
