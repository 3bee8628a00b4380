"""Whole packs as material: what their labels and identities mean, and what can be done to them."""
