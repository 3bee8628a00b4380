"""Floor 3: MXNet's and MXNet.jl's data iterators, over files of records and numbers, and arrays."""
