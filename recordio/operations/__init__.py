"""Packs made of packs, compared and counted."""
