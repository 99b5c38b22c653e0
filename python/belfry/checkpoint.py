"""Checkpoints of models that come with Belfry, as estimators and predictors."""

import ctypes
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .errors import FailedPreconditionError
from .library import lib
from .tables import Columns

_DTYPES = {"f32": lib.BEL_DTYPE_F32, "f64": lib.BEL_DTYPE_F64, "i32": lib.BEL_DTYPE_I32, "i64": lib.BEL_DTYPE_I64,
           "u8": lib.BEL_DTYPE_U8, "bool": lib.BEL_DTYPE_BOOL}


class Feature(NamedTuple):
    """A feature of the training: without the batch; `scale`: its numbers are those of the files times this."""
    name: str
    dtype: int
    shape: Tuple[int, ...]
    scale: float


def make_estimator(params: Dict[str, str], model_dir: str, **settings: str) -> Any:
    """bel_estimator of the model that params["model"] names. `settings`: flags of a run, as texts. The caller destroys
    it. Errors: those of bel_estimator_create."""
    package = lib.bel_model_find(params["model"].encode())
    config = lib.bel_run_config()
    lib.bel_run_config_init(ctypes.byref(config), ctypes.sizeof(config))
    texts = {name.encode(): value.encode() for name, value in settings.items()}
    texts[b"model_dir"] = model_dir.encode()
    for name, value in texts.items():
        lib.bel_run_config_set(ctypes.byref(config), name, value)
    pairs = (lib.bel_param * len(params))(*[(name.encode(), value.encode()) for name, value in params.items()])
    estimator = ctypes.c_void_p()
    lib.bel_estimator_create(package.contents.model_fn, ctypes.byref(config), pairs, len(params),
                             ctypes.byref(estimator))
    return estimator


class Checkpoint:
    """What a checkpoint says of its model: settings, features, and the description of a table's columns.

    path: the folder of a checkpoint, or a model_dir, of which the newest one counts. Errors: NotFoundError,
    DataLossError; FailedPreconditionError: the model is none of those that come with Belfry.
    """

    def __init__(self, path: str) -> None:
        handle = ctypes.c_void_p()
        lib.bel_checkpoint_open(os.fsencode(path), ctypes.byref(handle))
        try:
            self.folder = os.fsdecode(lib.bel_checkpoint_folder(handle))
            self.step = int(lib.bel_checkpoint_step(handle))
            self.settings: Dict[str, str] = {}
            while True:
                name = lib.bel_checkpoint_setting_name(handle, len(self.settings))
                if name is None:
                    break
                self.settings[name.decode()] = lib.bel_checkpoint_setting(handle, name).decode()
        finally:
            lib.bel_checkpoint_close(handle)
        self.params = {name[len("param."):]: value for name, value in self.settings.items()
                       if name.startswith("param.")}
        if not lib.bel_model_find(self.params.get("model", "").encode()):
            raise FailedPreconditionError(
                f"{self.folder}: a checkpoint does not contain its model function, and this one is of "
                f"{self.params.get('model', 'a program')}, which does not come with Belfry; hint: export the model "
                "(belfry export --package …, bel_export) and load the export")
        text = self.settings.get("table")
        self.columns: Optional[Columns] = None if text is None else Columns.parse(text, self.folder)

    def features(self) -> List[Feature]:
        """The features of the training, in their order. A table's weights are none of a prediction."""
        listed = json.loads(self.settings.get("features", "[]"))
        return [Feature(item["name"], _DTYPES[item["dtype"]], tuple(item["shape"]), item.get("scale", 1))
                for item in listed if item.get("role") == "feature"
                and not (self.columns is not None and item["name"] == "weight")]

    def estimator(self, **settings: str) -> Any:
        """bel_estimator of the model with the settings of its training; the caller destroys it."""
        return make_estimator(self.params, os.path.dirname(self.folder), **settings)

    def predictor(self, estimator: Any) -> Any:
        """bel_predictor of this checkpoint, which the caller destroys before the estimator."""
        features = self.features()
        if not features:
            raise FailedPreconditionError(f"{self.folder}: a version that did not record features wrote it; hint: "
                                          "train one more step")
        items = (lib.bel_feature * len(features))()
        for item, feature in zip(items, features):
            item.name, item.dtype, item.shape.rank = feature.name.encode(), feature.dtype, len(feature.shape)
            item.shape.dims[:len(feature.shape)] = feature.shape
        predictor = ctypes.c_void_p()
        lib.bel_estimator_predictor(estimator, items, len(features), os.fsencode(self.folder),
                                    ctypes.byref(predictor))
        return predictor
