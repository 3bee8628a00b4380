"""Floor 1: orders, random numbers, memory, devices, batches; imports no floor above."""
