"""Numbers, texts and lists of any length: from Python into records, and back as columns.

    python examples/tutorials/rows.py [FOLDER]

The kind of a feature follows from its values, so you wrap no values and describe no features to
read them. As columns, features with one value in every record are arrays; those with a variable
number of values are RaggedArray, which returns a row as an array.
"""

from stand_ins import working_folder

import recordsmith as rs

ROWS = [
    {
        "int_list1": 108,
        "float_list1": 2.45,
        "str_list1": "String 100",
        "float_list2": [256.78, 13.9],
    },
    {
        "int_list1": 37,
        "float_list1": 84.3,
        "str_list1": "String 200",
        "float_list2": [1.34, 843.9, 65.22],
    },
]

out = working_folder() / "rows"
rs.pack(rs.Rows(ROWS), out, shuffle=False, shard_names="example.tfrecord")

dataset = rs.open(out)
for example in dataset:
    print(example)

columns = dataset.read_columns()
print(columns["int_list1"], columns["float_list1"], columns["str_list1"].tolist())
for row in columns["float_list2"]:
    print(row)
