"""The structure of JPEG files, without their pixels: segments and headers, parts that are cut out
by walking the Huffman codes, restart intervals that make tiles.

Follows ITU T.81. Plain Python and compiled kernels over bytes: imports no other room, and NumPy at
most.
"""
