"""Floor 4: a test kit for packs, and for your own providers and data sets.

`material` makes packs, image files and lists, `comparing` compares batches, `runs` checks providers
and data sets, and `checks` spaces, decoders and packs.  None of them needs a test framework.
`iterators.testing.strategies` needs Hypothesis, and is imported by its own name.
"""

from .checks import check_decoder, check_pack, check_space
from .comparing import assert_same, copies, same, samples
from .material import (
    box_label,
    encode,
    encode_jpeg,
    noise,
    picture,
    write_faces,
    write_images,
    write_list,
    write_pack,
    write_records,
    write_rows,
)
from .runs import check_dataset, check_provider, check_states, maker

__all__ = [
    "assert_same",
    "box_label",
    "check_dataset",
    "check_decoder",
    "check_pack",
    "check_provider",
    "check_space",
    "check_states",
    "copies",
    "encode",
    "encode_jpeg",
    "maker",
    "noise",
    "picture",
    "same",
    "samples",
    "write_faces",
    "write_images",
    "write_list",
    "write_pack",
    "write_records",
    "write_rows",
]
