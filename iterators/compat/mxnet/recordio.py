"""Names of `mx.recordio`; its arrays are NumPy arrays in MXNet as well."""

from recordio import IRHeader as IRHeader
from recordio import MXIndexedRecordIO as MXIndexedRecordIO
from recordio import MXRecordIO as MXRecordIO
from recordio import pack as pack
from recordio import pack_img as pack_img
from recordio import unpack as unpack
from recordio import unpack_img as unpack_img
