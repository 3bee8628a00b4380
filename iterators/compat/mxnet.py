"""Names of MXNet, and three of MXNet.jl: of `mx.recordio`, `mx.io`, `mx.image` and `mx.gluon.data`.

Gluon's data sets are in `gluon`, because some of their names belong to other classes as well.
"""

from recordio import IRHeader as IRHeader
from recordio import MXIndexedRecordIO as MXIndexedRecordIO
from recordio import MXRecordIO as MXRecordIO
from recordio import pack as pack
from recordio import pack_img as pack_img
from recordio import unpack as unpack
from recordio import unpack_img as unpack_img

from ..core.batch import DataBatch as DataBatch
from ..core.batch import DataDesc as DataDesc
from ..datasets import gluon as gluon
from ..mx_image import Augmenter as Augmenter
from ..mx_image import BrightnessJitterAug as BrightnessJitterAug
from ..mx_image import CastAug as CastAug
from ..mx_image import CenterCropAug as CenterCropAug
from ..mx_image import ColorJitterAug as ColorJitterAug
from ..mx_image import ColorNormalizeAug as ColorNormalizeAug
from ..mx_image import ContrastJitterAug as ContrastJitterAug
from ..mx_image import CreateAugmenter as CreateAugmenter
from ..mx_image import CreateDetAugmenter as CreateDetAugmenter
from ..mx_image import CreateMultiRandCropAugmenter as CreateMultiRandCropAugmenter
from ..mx_image import DetAugmenter as DetAugmenter
from ..mx_image import DetBorrowAug as DetBorrowAug
from ..mx_image import DetHorizontalFlipAug as DetHorizontalFlipAug
from ..mx_image import DetRandomCropAug as DetRandomCropAug
from ..mx_image import DetRandomPadAug as DetRandomPadAug
from ..mx_image import DetRandomSelectAug as DetRandomSelectAug
from ..mx_image import ForceResizeAug as ForceResizeAug
from ..mx_image import HorizontalFlipAug as HorizontalFlipAug
from ..mx_image import HueJitterAug as HueJitterAug
from ..mx_image import ImageDetIter as ImageDetIter
from ..mx_image import ImageIter as ImageIter
from ..mx_image import LightingAug as LightingAug
from ..mx_image import RandomCropAug as RandomCropAug
from ..mx_image import RandomGrayAug as RandomGrayAug
from ..mx_image import RandomOrderAug as RandomOrderAug
from ..mx_image import RandomSizedCropAug as RandomSizedCropAug
from ..mx_image import ResizeAug as ResizeAug
from ..mx_image import SaturationJitterAug as SaturationJitterAug
from ..mx_image import SequentialAug as SequentialAug
from ..mx_image import center_crop as center_crop
from ..mx_image import color_normalize as color_normalize
from ..mx_image import copyMakeBorder as copyMakeBorder
from ..mx_image import fixed_crop as fixed_crop
from ..mx_image import imdecode as imdecode
from ..mx_image import imread as imread
from ..mx_image import imresize as imresize
from ..mx_image import imrotate as imrotate
from ..mx_image import random_crop as random_crop
from ..mx_image import random_rotate as random_rotate
from ..mx_image import random_size_crop as random_size_crop
from ..mx_image import resize_short as resize_short
from ..mx_image import scale_down as scale_down
from ..providers.arrays import NDArrayIter as NDArrayIter
from ..providers.csv import CSVIter as CSVIter
from ..providers.csv import CSVProvider as CSVProvider
from ..providers.data_iter import DataIter as DataIter
from ..providers.image_det_record import ImageDetRecordIter as ImageDetRecordIter
from ..providers.image_record import ImageRecordInt8Iter as ImageRecordInt8Iter
from ..providers.image_record import ImageRecordIter as ImageRecordIter
from ..providers.image_record import ImageRecordIter_v1 as ImageRecordIter_v1
from ..providers.image_record import ImageRecordProvider as ImageRecordProvider
from ..providers.image_record import ImageRecordUInt8Iter as ImageRecordUInt8Iter
from ..providers.libsvm import LibSVMIter as LibSVMIter
from ..providers.mnist import MNISTIter as MNISTIter
from ..providers.mnist import MNISTProvider as MNISTProvider
from ..providers.mx_data_provider import MXDataProvider as MXDataIter  # noqa: F401
from ..providers.mx_data_provider import MXDataProvider as MXDataProvider
from ..providers.wrappers import PrefetchingIter as PrefetchingIter
from ..providers.wrappers import ResizeIter as ResizeIter
