from typing_extensions import Buffer

__all__ = ["MAGIC", "MAX_RECORD_LENGTH", "encode", "encode_into"]

MAGIC: bytes
MAX_RECORD_LENGTH: int

def encode(payload: Buffer) -> bytes: ...
def encode_into(buffer: Buffer, position: int, payload: Buffer) -> int: ...
