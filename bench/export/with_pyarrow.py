"""Writes the rows of a Parquet file again with pyarrow, from three starting points.

    python with_pyarrow.py FILE FOLDER

rows:   what a rollout leaves in Python: a dict per row with lists of numbers, messages and other nested fields as
        objects, which become JSON texts as they are in the file
arrays: the same with a numpy array for every list
table:  Arrow's own columns, ready in memory

Seconds are of processor time, of writing alone, after 2 million tokens of each kind. Row groups are those of the file.
"""

import json
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NESTED = [
    "origins", "versions", "rewards", "outcome", "sampling", "messages", "tools", "fidelity", "usage",
]  # fmt: skip


def from_table(table):
    rows = table.to_pylist()
    for row in rows:
        for name in NESTED:
            row[name] = json.loads(row[name])
    return rows


def to_arrays(rows, schema):
    lists = [field for field in schema if pa.types.is_list(field.type)]
    for row in rows:
        for field in lists:
            if row[field.name] is not None:
                row[field.name] = np.array(row[field.name], field.type.value_type.to_pandas_dtype())
    return rows


def to_table(rows, schema):
    texts = [{**row, **{name: json.dumps(row[name]) for name in NESTED}} for row in rows]
    return pa.Table.from_pylist(texts, schema=schema)


def prepare(table, start):
    if start == "table":
        return table
    rows = from_table(table)
    return rows if start == "rows" else to_arrays(rows, table.schema)


def measure(source, path, start, groups):
    """Only one row group is prepared at a time, so that any file fits into memory."""
    spent = 0.0
    writer = None
    for index in range(groups):
        table = source.read_row_group(index)
        schema = table.schema
        given = prepare(table, start)
        began = time.process_time()
        if writer is None:
            writer = pq.ParquetWriter(path, schema, compression="snappy")
        writer.write_table(given if start == "table" else to_table(given, schema))
        spent += time.process_time() - began
    began = time.process_time()
    writer.close()
    return spent + time.process_time() - began


def main():
    file, folder = sys.argv[1:3]
    source = pq.ParquetFile(file)
    tokens = source.metadata.num_rows * 5000
    warm = max(1, round(source.num_row_groups * min(1, 2_000_000 / tokens)))
    seconds = {}
    for start in ("rows", "arrays", "table"):
        path = f"{folder}/{start}.parquet"
        measure(source, path, start, warm)
        seconds[start] = measure(source, path, start, source.num_row_groups)
    assert pq.ParquetFile(path).metadata.num_rows == source.metadata.num_rows
    assert pq.read_table(path).equals(pq.read_table(file)), "they wrote another table"
    print(json.dumps({"seconds": seconds, "version": pa.__version__, "file": path}))


main()
