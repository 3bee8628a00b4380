"""Names of `chainer.serializer`."""

from ...loops import Deserializer as Deserializer
from ...loops import Serializer as Serializer
