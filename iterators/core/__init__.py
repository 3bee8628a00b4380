"""Floor 1: orders, positions, memory, devices and descriptions of batches; imports no floor above."""
