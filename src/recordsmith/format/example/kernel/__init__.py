"""What is compiled: Example payloads <-> values or other payloads, one at a time or whole batches.

No policy and no words: buffers and integer arrays in, memory and codes out. All reading goes
through the spans of message.h, which look at no byte outside the payload; memory grows with the
bytes that were really there, at most eightfold (a one-byte varint becomes an int64), or by the
features of one payload that are rewritten.

    payloads    what a payload is, and where in it things lie
    decoding    one payload to a dict
    encoding    a dict, or rows of columns, to payloads
    columns     chosen features of many payloads to columns
    survey      which features many payloads have
    rewriting   many payloads with other features
    memory      what they hand out

They read with message.pxd (the wire format) and places.pxd (where payloads lie in a buffer).
"""
