"""Datasets: a source of records and a list of stages, under the names of belfry/dataset.h.

Before `map` stages work on numbers of records, so a run resumes in the middle of an epoch, and workers read different
batches. Functions of Python (map, filter, from_generator …) run one at a time, because each call takes the GIL.
"""

import contextlib
import ctypes
import inspect
import itertools
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import structs
from .calls import Call, Handle, reads
from .errors import InvalidArgumentError, expect
from .library import lib
from .ops import derive
from .structs import Path
from .tables import is_frame
from .tensors import array_of, dtype_number, tensor_of, view_of

Fields = Mapping[str, Any]
_Maker = Callable[[Call], Any]  # makes a handle of the library
_Stage = Callable[[Call, int], Any]
FOREVER = -1


class Skip(Exception):
    """Raised by a map to leave its record out: the batch is one shorter."""


class Record(Handle):
    """A record in a function of a dataset: record["x"] is a copy of a field, an array, or a str. Valid during the
    call."""

    number: int = reads("bel_record_number", "The record's number, from 0 on.")
    epoch: int = reads("bel_record_epoch", "The number of the pass; 0 in filters.")
    origin: str = reads("bel_record_origin", "The record's place: \"train.csv:17\".")

    def __getitem__(self, name: str) -> Any:
        found = lib.bel_record_get(self.handle, name.encode())
        if not found:
            raise KeyError(f"{self.origin}: there is no field {name}")
        tensor = found.contents
        if tensor.dtype == lib.BEL_DTYPE_STRING:
            return ctypes.string_at(tensor.data, tensor.shape.dims[0]).decode(errors="surrogateescape")
        return view_of(tensor).copy()

    def path(self, field: str, folder: Optional[str] = None) -> Optional[str]:
        """The path of the file that a text field names, beside the record's file or in `folder`; None: none."""
        found = lib.bel_record_path(self.handle, field.encode(), None if folder is None else folder.encode())
        return found.decode(errors="surrogateescape") if found else None

    def random(self, seed: int, index: int = 0) -> float:
        """A number in [0, 1), a function of seed, index, and the record's number and epoch: for augmentation."""
        return float(lib.bel_record_random(self.handle, seed, index))


def _add(record: int, fields: Any, what: str) -> None:
    """Adds fields to a record."""
    expect(isinstance(fields, Mapping), f"{what}: expected a dict of fields, got {type(fields).__name__}")
    for name, value in fields.items():
        if isinstance(value, str):
            array: Any = np.frombuffer(value.encode(), np.uint8)
            shape, dtype = array.shape, lib.BEL_DTYPE_STRING
        else:
            array = _elements(value, f"{what}: field {name}")
            shape, dtype = array.shape, dtype_number(array.dtype, f"{what}: field {name}")
        memory = lib.bel_record_add(record, structs.text(name, what), dtype,
                                    ctypes.byref(structs.shape(shape, f"{what}: field {name}")))
        expect(memory, f"{what}: field {name}: the library refuses {shape} of type {dtype}")
        ctypes.memmove(memory, array.ctypes.data, array.nbytes)


def _change(record: int, skip: Any, function: Callable[..., Fields], *part: int) -> None:
    """Adds the fields that a map returns for a record."""
    try:
        _add(record, Record(record).lend(function, *part), "map")
    except Skip:
        skip[0] = True


def _elements(value: Any, what: str) -> Any:
    """An array in C order; floats and lists of floats become float32, arrays keep their type."""
    array = np.asarray(value)
    if array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    if array.dtype.hasobject:
        raise InvalidArgumentError(f"{what}: expected numbers of one shape, or a str; got {value!r}")
    return np.ascontiguousarray(array).reshape(array.shape)


def _stage(name: str, words: str, **defaults: Any) -> Callable[..., "Dataset"]:
    """The method of a stage of which all arguments are plain or fields of options, made from its declaration."""
    function = f"bel_dataset_{name}"
    arguments_of = derive(name, function, 1, lambda converted, _arguments: converted, **defaults)

    def method(self: "Dataset", *arguments: Any, **named: Any) -> "Dataset":
        converted = arguments_of(*arguments, **named)
        return self._then(lambda _call, handle: getattr(lib, function)(handle, *converted))
    method.__name__, method.__doc__ = name, f"{inspect.signature(arguments_of)}: {words}"
    return method


class Dataset:
    """Description of an input, which never changes: each method returns a new one. Make one with the functions from_…

    A record has named fields, each an array. The field "label" becomes the labels of a model function, the others its
    features. Mistakes in files and functions show in the call that trains, evaluates or predicts.
    """

    def __init__(self, source: _Maker, stages: Tuple[_Stage, ...] = ()) -> None:
        self._source, self._stages = source, stages

    def make(self, call: Call) -> int:
        """A dataset of the library, owned by the caller; what it points to lives until the call ends."""
        call.keep.append(self)
        handle: int = self._source(call)
        try:
            for stage in self._stages:
                stage(call, handle)
        except BaseException:
            lib.bel_dataset_destroy(handle)
            raise
        return handle

    def _then(self, stage: _Stage) -> "Dataset":
        return Dataset(self._source, self._stages + (stage,))

    # --- Sources

    @staticmethod
    def from_memory(x: Any, label: Any = None) -> "Dataset":
        """Records of arrays with an equal leading dimension, one record for each row.

        x: an array, which becomes the field "x", or several by name: a dict, or a pandas frame, whose columns become
        fields. label: an array for the field "label", or the name of a field of x; None: none. Arrays are numpy's or
        objects with DLPack on the CPU. Those in C order are not copied, so leave them unchanged while they are in use;
        others are copied once. Types stay: a layer needs float32, labels of classes int64.
        """
        arrays = _arrays(x, label)
        fields = (lib.bel_memory_field * max(len(arrays), 1))(*(
            (name.encode(), tensor_of(array, f"from_memory: {name}")) for name, array in arrays.items()))
        return Dataset(lambda _call: lib.bel_dataset_from_memory(fields, len(arrays)))

    @staticmethod
    def from_csv(paths: Union[Path, Sequence[Path]], **options: Any) -> "Dataset":
        """Rows of CSV files, or of patterns of them. options: fields of bel_csv_options: label_column, class_count,
        scale, vector_name, delimiter, no_header, id_columns, length_column, holdout={"share": 0.2, "held": True},
        columns={"path": str, "age": np.float32} …"""
        return _from_options("csv", {"paths": _list(paths), **options})

    @staticmethod
    def from_idx(images: Path, labels: Optional[Path] = None, *, scale: float = 1.0, class_count: int = 0) -> "Dataset":
        """Images of the MNIST format, plain or .gz: "x", float32, flattened and multiplied by scale; "label", int64."""
        files = structs.text(images, "images"), None if labels is None else structs.text(labels, "labels")
        return Dataset(lambda _call: lib.bel_dataset_from_idx(*files, float(scale), int(class_count)))

    @staticmethod
    def from_text(paths: Union[Path, Sequence[Path]]) -> "Dataset":
        """Lines of text files: the str field "text", which a map turns into numbers and drops."""
        listed = structs.sequence("const char *const *", _list(paths), "from_text: paths")
        return Dataset(lambda _call: lib.bel_dataset_from_text(listed or None, len(listed)))

    @staticmethod
    def from_tfrecord(paths: Union[Path, Sequence[Path]],
                      features: Optional[Mapping[str, Mapping[str, Any]]] = None) -> "Dataset":
        """Records of TFRecord files. features: those of tf.train.Example that become fields, by key, each a dict of
        dtype (np.float32, np.int64, np.uint8 or str), shape [()], field (another name) and missing (the value of
        records without it; unset: they are an error). None: the record's bytes become the str field "record"."""
        listed = None if features is None else [_example_feature(key, item) for key, item in features.items()]
        return _from_options("tfrecord", {"paths": _list(paths), "features": listed})

    @staticmethod
    def from_function(function: Callable[[int], Fields], count: int) -> "Dataset":
        """Records that a function makes from their numbers, as dicts of fields. count: of records; FOREVER: one epoch
        without an end. The result must depend only on the number."""
        def source(call: Call) -> int:
            made = call.status(lib.bel_make_fn, lambda _user, number, record: _add(
                record, function(number), "from_function"))
            return int(lib.bel_dataset_from_function(made, None, count))
        return Dataset(source)

    @staticmethod
    def from_generator(begin: Callable[[int], Iterable[Fields]], count: int = 0) -> "Dataset":
        """Records that can be made only one after another.

        begin: called as begin(epoch), returns an iterable of records, dicts of fields; they must depend only on the
        epoch and the position. count: records in each epoch; 0: epoch 0 is counted first; FOREVER: one epoch without
        an end. A run that resumes in the middle of an epoch makes the records before again; each worker makes the
        records of all workers. DataLossError: an epoch has fewer records. A warning says once if it has more, which
        are left out.
        """
        return Dataset(lambda call: lib.bel_dataset_from_generator(
            ctypes.byref(_Generator(begin, call, count).struct), None, count))

    # --- Datasets made of datasets

    @staticmethod
    def concatenate(datasets: Sequence["Dataset"]) -> "Dataset":
        """The records of the first, then those of the second, and so on."""
        return _combine(datasets, lib.bel_dataset_concatenate)

    @staticmethod
    def zip(datasets: Sequence["Dataset"]) -> "Dataset":
        """Record i has the fields of record i of all datasets; ends with the shortest."""
        return _combine(datasets, lib.bel_dataset_zip)

    @staticmethod
    def interleave(datasets: Sequence["Dataset"], cycle_length: int = 0, block_length: int = 1) -> "Dataset":
        """Takes block_length records in turn from each of the first cycle_length datasets (0: all)."""
        return _combine(datasets, lib.bel_dataset_interleave, int(cycle_length), int(block_length))

    @staticmethod
    def sample(datasets: Sequence["Dataset"], weights: Sequence[float], count: int = 0, seed: int = 0) -> "Dataset":
        """Draws each record from dataset i with probability weights[i] / sum. count: records of an epoch; 0: each
        record of all datasets once."""
        expect(len(weights) == len(datasets), f"sample: expected {len(datasets)} weights, got {len(weights)}")
        numbers = (ctypes.c_double * max(len(weights), 1))(*map(float, weights))
        return _combine(datasets, lambda handles, number: lib.bel_dataset_sample(handles, numbers, number, count, seed))

    # --- Stages that renumber

    shuffle = _stage("shuffle", "permutes each epoch inside windows of buffer_size records; 0: one window over "
                     "everything.", buffer_size=0, seed=0)
    shuffle_sliding = _stage("shuffle_sliding", "shuffles as tf.data does, with a buffer that slides over the stream.",
                             seed=0)
    repeat = _stage("repeat", "repeats the records; each pass is an epoch.", count=FOREVER)
    take = _stage("take", "keeps at most the first `count` records.")
    skip = _stage("skip", "drops the first `count` records.")
    shard = _stage("shard", "keeps records whose number modulo count is index. Workers of a job need no shard.")
    enumerate = _stage("enumerate", "adds an int64 field with the record's position in the stream.", start=0)
    window = _stage("window", "windows of `size` records, which give every field a leading dimension. shift 0: they do "
                    "not overlap.", shift=0, stride=1, drop_remainder=False)
    cache = _stage("cache", "caches the records of the stages before, in memory (up to most_bytes; 0: no limit) or in "
                   "a file.", path=None, most_bytes=0)

    def filter(self, keep: Callable[[Record], bool]) -> "Dataset":
        """Keeps the records for which a function returns true; judged once at opening, before any map."""
        def stage(call: Call, handle: int) -> None:
            lib.bel_dataset_filter(handle, call.plain(
                lib.bel_filter_fn, lambda _user, record: bool(Record(record).lend(keep)), False), None)
        return self._then(stage)

    def bucket_by_length(self, length: Callable[[Record], int], boundaries: Sequence[int]) -> "Dataset":
        """Batches records of similar length together; boundaries rise."""
        numbers = structs.sequence("const int64_t *", boundaries, "bucket_by_length: boundaries")

        def stage(call: Call, handle: int) -> None:
            lib.bel_dataset_bucket_by_length(handle, call.plain(
                lib.bel_length_fn, lambda _user, record: int(Record(record).lend(length)), 0), None, numbers or None,
                len(numbers))
        return self._then(stage)

    # --- Maps and batches

    def map(self, function: Callable[[Record], Fields], drop: Sequence[str] = ()) -> "Dataset":
        """Adds or replaces fields of each record: those of the dict that a function returns.

        function: called as function(record); raise belfry.Skip to leave the record out. The result must depend only
        on the record, its number and its epoch. drop: fields to remove afterwards; texts must be dropped.
        """
        def stage(call: Call, handle: int) -> None:
            made = call.status(lib.bel_map_fn, lambda _user, record, skip: _change(record, skip, function))
            lib.bel_dataset_map(handle, made, None, _names(drop, call))
        return self._then(stage)

    def flat_map(self, count: Callable[[Record], int], function: Callable[[Record, int], Fields],
                 drop: Sequence[str] = ()) -> "Dataset":
        """Replaces each record by count(record) records: function(record, part) returns the fields of a part."""
        def stage(call: Call, handle: int) -> None:
            counted = call.plain(lib.bel_flat_count_fn, lambda _user, record: int(Record(record).lend(count)), 0)
            made = call.status(lib.bel_flat_map_fn, lambda _user, record, part, skip: _change(
                record, skip, function, part))
            lib.bel_dataset_flat_map(handle, counted, made, None, _names(drop, call))
        return self._then(stage)

    map_image = _stage("map_image", "reads the image that each record names; fields of bel_image_options.")
    map_audio = _stage("map_audio", "computes features of the sound that each record names; bel_audio_options.")
    map_words = _stage("map_words", "turns a text into ids of words; bel_words_options.")
    named_files = _stage("named_files", "declares that maps read the files which a text field names: checkpoints and "
                         "caches compare their sizes.", folder=None)
    batch = _stage("batch", "batches of records, across epochs; the last batch has the rest.")

    def padded_batch(self, batch_size: int, shapes: Optional[Mapping[str, Sequence[Optional[int]]]] = None,
                     values: Optional[Mapping[str, float]] = None) -> "Dataset":
        """Batches whose fields are padded to the longest record. shapes: fixed dimensions of fields, with None for
        the longest. values: what pads a field, instead of 0."""
        listed = structs.sequence("const bel_padded_shape *", dict(shapes or {}), "padded_batch: shapes")

        def stage(_call: Call, handle: int) -> None:
            lib.bel_dataset_padded_batch(handle, int(batch_size), listed or None, len(listed))
            for field, value in (values or {}).items():
                lib.bel_dataset_pad_value(handle, structs.text(field, "padded_batch"), float(value))
        return self._then(stage)

    def labels(self, names: Sequence[str]) -> "Dataset":
        """Names fields that are labels besides "label": ctx.label(name)."""
        listed = structs.sequence("const char *const *", list(names), "labels")
        return self._then(lambda _call, handle: lib.bel_dataset_labels(handle, listed or None, len(listed)))

    skip_bad_records = _stage("skip_bad_records", "skips up to `most` records that cannot be read or whose map fails; "
                              "a warning names each.")
    prefetch = _stage("prefetch", "batches that are kept ready, and threads that make them; -1: automatic.", depth=-1,
                      thread_count=-1)


def _arrays(x: Any, label: Any) -> Dict[str, Any]:
    """The fields of from_memory, as arrays in C order."""
    given = {str(name): value for name, value in x.items()} if is_frame(x) else {"x": x}
    if isinstance(label, str):
        if label not in given:
            raise structs.refuse(label, given, "from_memory: label")
        given["label"] = given.pop(label)
    elif label is not None:
        given["label"] = label
    arrays = {}
    for name, value in given.items():
        if hasattr(value, "to_numpy"):
            kind = getattr(getattr(value, "dtype", None), "numpy_dtype", None)  # of pandas' Int64, boolean …
            expect(kind is None or not value.isna().any(), f"from_memory: {name}: expected a number in each row, got "
                   "pandas.NA; hint: fillna, or astype(float) for NaN")
            value = value.to_numpy() if kind is None else value.to_numpy(kind)
        array = np.asarray(value) if isinstance(value, (list, tuple)) else array_of(value, f"from_memory: {name}")
        expect(array.dtype.kind not in "OSU", f"from_memory: {name}: expected numbers, got {array.dtype}; hint: a "
               "column of texts has numbers after pandas' factorize, or give the table as CSV")
        expect(array.ndim != 0, f"from_memory: {name}: expected a row for each record, got a number")
        arrays[name] = np.ascontiguousarray(array)
    lengths = {name: len(array) for name, array in arrays.items()}
    expect(len(set(lengths.values())) <= 1, f"from_memory: expected arrays with equal numbers of rows, got {lengths}")
    return arrays


def _example_feature(key: str, item: Mapping[str, Any]) -> Dict[str, Any]:
    """Fields of bel_example_feature."""
    made: Dict[str, Any] = {"key": key, "shape": (), **item}
    missing = made.pop("missing", None)
    if missing is not None:
        made["missing"] = ctypes.cast(ctypes.create_string_buffer(
            structs.text(missing, key) if isinstance(missing, str) else np.array(missing, made["dtype"]).tobytes()),
            ctypes.c_void_p)
    return made


def _list(paths: Any) -> List[Any]:
    return list(paths) if isinstance(paths, (list, tuple)) else [paths]


def _names(names: Sequence[str], call: Call) -> Any:
    """A list of texts that ends with NULL; None without any."""
    if not names:
        return None
    array = (ctypes.c_char_p * (len(names) + 1))(*(structs.text(name, "drop") for name in names))
    call.keep.append(array)
    return array


def _from_options(kind: str, options: Mapping[str, Any]) -> Dataset:
    """A source with a struct of options."""
    struct = ctypes.byref(structs.make(f"bel_{kind}_options", options, f"from_{kind}"))
    return Dataset(lambda _call: getattr(lib, f"bel_dataset_from_{kind}")(struct))


def _combine(datasets: Sequence[Dataset], function: Callable[..., Any], *more: int) -> Dataset:
    """The dataset that a function of the library makes of several, which it takes over."""
    def source(call: Call) -> int:
        with contextlib.ExitStack() as made:
            handles = []
            for dataset in datasets:
                expect(isinstance(dataset, Dataset), f"expected a belfry.Dataset, got {type(dataset).__name__}")
                handles.append(dataset.make(call))
                made.callback(lib.bel_dataset_destroy, handles[-1])
            made.pop_all()  # the function frees them
        return int(function((ctypes.c_void_p * max(len(handles), 1))(*handles), len(handles), *more))
    return Dataset(source)


class _Generator:
    """bel_generator of a function that makes iterables. A state is the number of an iterator."""

    def __init__(self, begin: Callable[[int], Iterable[Fields]], call: Call, count: int) -> None:
        self._begin, self._count = begin, count
        self._made: Dict[int, int] = {}  # records of each state
        self._said = False
        self._states: Dict[int, Iterator[Fields]] = {}
        self._numbers = itertools.count(1)
        self.struct = lib.bel_generator(size=ctypes.sizeof(lib.bel_generator))
        self.struct.begin = call.status(type(self.struct.begin), self._start)
        self.struct.next = call.status(type(self.struct.next), self._next)
        self.struct.end = call.plain(type(self.struct.end), self._end, None)
        call.keep.append(self)

    def _start(self, _user: Any, epoch: int, out_state: Any) -> None:
        number = next(self._numbers)
        self._states[number] = iter(self._begin(epoch))
        self._made[number] = 0
        out_state[0] = number

    def _next(self, _user: Any, state: int, record: int, out_end: Any) -> None:
        try:
            fields = next(self._states[state])
        except StopIteration:
            out_end[0] = True
            return
        _add(record, fields, "from_generator")
        self._made[state] += 1

    def _look_for_more(self, state: int) -> None:
        """Warns if an epoch has more records than it may. It needs one more record of the epoch."""
        if self._made.pop(state) != self._count or self._said or self._count <= 0:
            return
        self._said = True
        more = None
        with contextlib.suppress(Exception):  # a record that is left out may be a broken one
            more = next(self._states[state], None)
        if more is not None:
            warnings.warn(f"from_generator: expected {self._count} records in an epoch, got more, which are left out; "
                          "hint: count=0 counts them", stacklevel=2)

    def _end(self, _user: Any, state: int) -> None:
        self._look_for_more(state)
        close = getattr(self._states.pop(state), "close", None)
        if close is not None:
            close()
