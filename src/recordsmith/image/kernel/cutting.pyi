from recordsmith.buffers import BytesLike

def cut_jpeg(
    data: BytesLike, top: int, left: int, height: int, width: int, divisor: int
) -> tuple[bytes, int, int, int, int] | None: ...
