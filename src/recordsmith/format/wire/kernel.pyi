import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import BytesLike

def crc32c(data: BytesLike, value: int = 0) -> int: ...

WAY_COUNT: int

def crc32c_by(way: int, data: BytesLike, value: int = 0) -> int: ...
def masked_crc32c(data: BytesLike) -> int: ...
def scan(
    buffer: BytesLike,
    start: int,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    check_payload_crc: bool,
) -> tuple[int, int, int]: ...
def check(buffer: BytesLike, start: int) -> tuple[int, int, int]: ...
def find_header(buffer: BytesLike, start: int, stop: int, end: int) -> int: ...
def gather(
    buffer: BytesLike,
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    check_payload_crc: bool,
    whole: bool,
) -> tuple[int, int]: ...
def lengths_of_headers(
    headers: npt.NDArray[np.uint8], room: int, lengths: npt.NDArray[np.int64]
) -> tuple[int, int]: ...
def frame_list(payloads: list[BytesLike]) -> bytes: ...
def frame_into(payload: BytesLike, out: bytearray, at: int) -> int: ...
def frame_slices(
    data: BytesLike, offsets: npt.NDArray[np.int64], out: npt.NDArray[np.uint8] | bytearray
) -> None: ...
