"""A rank of tests/cli/python.sh: collectives on arrays, errors, what is in place. Prints one line that is equal on all
ranks. usage: ranks.py [raise]"""
import hashlib
import sys

import numpy as np

import belfry
import belfry.ddl as ddl


def fails(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("no error with " + words)


fails(belfry.FailedPreconditionError, "ddl.init() first", lambda: ddl.rank())
fails(belfry.FailedPreconditionError, "ddl.init() first", lambda: ddl.barrier())
fails(belfry.InvalidArgumentError, "order: expected fixed, fast, got 'any'", lambda: ddl.init(order="any"))
fails(belfry.InvalidArgumentError, "mode", lambda: ddl.init(mode="?"))
ddl.init(timeout=60)
ddl.init()
rank, size = ddl.rank(), ddl.size()
assert 0 <= rank < size and ddl.local_rank() == rank and ddl.local_size() == size and ddl.local_device() == rank

weights = np.full((3, 2), rank + 1, np.float64)
ddl.bcast(weights)
assert (weights == 1).all()
ddl.bcast([weights, flags := np.array([rank == size - 1])], root=size - 1)
assert flags[0]

floats, more = np.arange(100000, dtype=np.float32) * (rank + 1), np.full(3, rank, np.float64)
ddl.all_reduce_n([floats, more])
assert np.allclose(floats, np.arange(100000) * (size + 1) / 2) and np.allclose(more, (size - 1) / 2)
counts = np.full(4, 1 << 40, np.int64)
ddl.all_reduce_n((counts, floats), op="sum")
assert (counts == size << 40).all()
ddl.all_reduce_n([])
ones = np.ones(4, np.float32)  # the same memory with another type, and read-only
bits = np.full(4, size**2, np.float32).view(np.int32)
for array, expected in ((ones, size), (ones, size**2), (ones.view(np.int32), bits * np.int32(size))):
    ddl.all_reduce_n([array], op="sum")
    assert (array == expected).all(), (array, expected)
ones.flags.writeable = False

fails(belfry.InvalidArgumentError, "op: expected sum, avg, got 'max'", lambda: ddl.all_reduce_n(floats, op="max"))
fails(belfry.InvalidArgumentError, "ddl.init(check=1e-5)", lambda: ddl.all_reduce_n(floats, check=1e-5))
fails(belfry.InvalidArgumentError, "array 1: expected an array in C order",
      lambda: ddl.all_reduce_n([floats, np.zeros((4, 4), np.float32).T]))
fails(belfry.InvalidArgumentError, "array 0: expected elements of", lambda: ddl.bcast(np.zeros(2, np.complex64)))
fails(belfry.InvalidArgumentError, "got list", lambda: ddl.bcast([[1, 2]]))
frozen = np.zeros(2)
frozen.flags.writeable = False
fails(belfry.InvalidArgumentError, "can be written", lambda: ddl.bcast(frozen))
fails(belfry.InvalidArgumentError, "can be written", lambda: ddl.all_reduce_n([ones]))
if sys.argv[1:] == ["raise"] and rank == 1:
    raise KeyError("this rank cannot continue")
if sys.argv[1:] == ["leave"] and rank == 1:
    sys.exit(0)
ddl.barrier()
ddl.finalize()
ddl.finalize()
# In one piece, as the ranks share stdout.
sys.stdout.write(f"{size} {hashlib.md5(floats.tobytes() + more.tobytes()).hexdigest()}\n")
