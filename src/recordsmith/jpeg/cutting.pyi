from recordsmith.support.buffers import BytesLike

def cut_jpeg(
    data: BytesLike,
    top: int,
    left: int,
    height: int,
    width: int,
    divisor: int,
    interval: tuple[int, int] = ...,
) -> tuple[bytes, int, int, int, int, tuple[int, int]] | None: ...
def cut_cost(data: BytesLike, top: int, left: int, height: int, width: int) -> int | None: ...
