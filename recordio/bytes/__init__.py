"""The one door to bytes: here and on servers, mapped, compressed; output that appears whole."""
