"""Packs made of packs, compared and counted: one module for each operation."""
