BLOCK_BYTES: int
PART_BYTES: int
HEAD_BYTES: int
TABLE_BYTES: int
GROUP_BYTES: int
SLOT_COUNT: int
BLOCK_COUNT: int
ENTRY_BYTES: int

def read(
    file: int, name: int, version: int, start: int, stop: int, now: int, refresh_after: int
) -> tuple[bytes, int, int]: ...
def places(name: int, version: int, part: int, count: int) -> tuple[int, int]: ...
def claim(
    file: int, group: int, slot: int, name: int, version: int, part: int, now: int
) -> int: ...
def write_blocks(
    file: int,
    group: int,
    slot: int,
    name: int,
    version: int,
    part: int,
    first: int,
    data: bytes | memoryview,
) -> int: ...
