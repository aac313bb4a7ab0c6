# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Best fit: put each piece into the fullest row that has room for it."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np


def best_fit(const int64_t[::1] lengths not None, int64_t capacity):
    """Pack pieces, one after the other, each into the row with the least sufficient room.

    lengths: (count,), from 1 to `capacity`, which is at most 2**30.
    Returns int32 (count,), the row of each piece, and the number of rows.
    """
    cdef int64_t count = lengths.shape[0], piece, length, room, node, leaves = 1
    cdef int32_t row, row_count = 0
    if not 1 <= capacity <= 1 << 30 or count >= 1 << 31:
        raise ValueError("invalid capacity or count")
    while leaves <= capacity:
        leaves *= 2
    # `heads[room]` is the last row with so much room, `nexts[row]` the one before it; the leaves
    # of the tree say which rooms some row has, and its inner nodes, which subtrees have such leaves
    rows_array = np.empty(count, np.int32)
    cdef int32_t[::1] rows = rows_array
    cdef int32_t[::1] heads = np.full(leaves, -1, np.int32)
    cdef int32_t[::1] nexts = np.empty(count, np.int32)
    cdef uint8_t[::1] tree = np.zeros(2 * leaves, np.uint8)
    with nogil:
        for piece in range(count):
            length = lengths[piece]
            if length < 1 or length > capacity:
                row_count = -1
                break
            node = leaves + length
            if not tree[node]:  # up to the first subtree on the right with a leaf, and down again
                while node > 1 and (node & 1 or not tree[node + 1]):
                    node >>= 1
                if node > 1:
                    node += 1
                    while node < leaves:
                        node = 2 * node + (not tree[2 * node])
            if node > 1:
                room = node - leaves
                row = heads[room]
                heads[room] = nexts[row]
                if heads[room] < 0:
                    tree[node] = 0
                    while node > 1 and not tree[node ^ 1]:
                        node >>= 1
                        tree[node] = 0
            else:
                room, row = capacity, row_count
                row_count += 1
            rows[piece] = row
            room -= length
            nexts[row] = heads[room]
            heads[room] = row
            node = leaves + room
            while node and not tree[node]:
                tree[node] = 1
                node >>= 1
    if row_count < 0:
        raise ValueError("a length is out of range")
    return rows_array, row_count
