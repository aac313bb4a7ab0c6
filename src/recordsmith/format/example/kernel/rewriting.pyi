from collections.abc import Callable

from recordsmith.format.example.kernel.memory import Memory
from recordsmith.support.buffers import BytesLike, Int64Array

CODES: dict[str, int]

class Rewriter:
    row: int
    def __init__(
        self,
        actions: list[tuple[bool, bytes | None, int, int, int]],
        is_added: bytes,
        added: bytes,
        action_of: Callable[[bytes], int],
        new_value_of: Callable[[int, int, bytes], bytes],
        most_bytes: int,
    ) -> None: ...
    def rewrite(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, first: int, enough: int
    ) -> tuple[int, int, Memory, Memory]: ...
