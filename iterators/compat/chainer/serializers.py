"""Names of `chainer.serializers`."""

from ...loops import DictionarySerializer as DictionarySerializer
from ...loops import NpzDeserializer as NpzDeserializer
from ...loops import load_npz as load_npz
from ...loops import save_npz as save_npz
