from recordsmith.support.buffers import BytesLike

DONE: int
UNSUPPORTED: int
DAMAGED: int
TOO_LARGE: int
NO_CODE: int
LEFT_OVER: int

def read_mcus(data: BytesLike) -> tuple[int, int, int, int, int] | None: ...
def can_be_cut(data: BytesLike) -> bool: ...
def with_interval(data: BytesLike, interval: int) -> tuple[int, bytes]: ...
