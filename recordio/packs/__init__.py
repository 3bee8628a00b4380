"""Packs: records with their index, labels, classes, identities, lists and manifest."""
