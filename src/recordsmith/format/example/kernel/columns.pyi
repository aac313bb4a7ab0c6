from recordsmith.format.example.kernel.memory import Memory
from recordsmith.support.buffers import BytesLike, Int64Array

class ColumnBuilder:
    def __init__(
        self,
        keys: list[bytes],
        kinds: list[int],
        required: list[int],
        defaults: list[tuple[bytes, bytes, int] | None],
        are_borrowed: list[bool],
        have_validity: list[bool],
        are_in_steps: list[int],
        fills_missing: bool = False,
    ) -> None: ...
    def append(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> tuple[int, int, int, int, int]: ...
    def kind(self, column: int) -> int: ...
    def finish(
        self, with_all_splits: bool = True
    ) -> list[tuple[int, Memory, Memory, Memory, int, int, int, Memory, Memory]]: ...
