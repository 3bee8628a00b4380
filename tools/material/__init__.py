"""Packs as material: the commands that make packs of packs, one module for each group."""
