"""Checkpoints of models that come with Belfry, as estimators and predictors."""

import json
import os
from typing import Any, Dict, List, Optional

from . import structs
from .config import RunConfig
from .errors import FailedPreconditionError
from .estimator import Estimator
from .library import lib
from .tables import Columns
from .tensors import numpy_dtype


class Checkpoint:
    """What a checkpoint says of its model: settings, features, and the description of a table's columns.

    path: the folder of a checkpoint, or a model_dir, of which the newest one counts. best: the best evaluated one of a
    model_dir. Errors: NotFoundError, DataLossError; FailedPreconditionError: the model does not come with Belfry.
    """

    def __init__(self, path: str, best: bool = False) -> None:
        handle = lib.make("bel_checkpoint_open_best" if best else "bel_checkpoint_open", os.fsencode(path))
        try:
            self.folder = os.fsdecode(lib.bel_checkpoint_folder(handle))
            self.step = int(lib.bel_checkpoint_step(handle))
            names = structs.texts(lib.bel_checkpoint_setting_name, handle)
            self.settings = {name: lib.bel_checkpoint_setting(handle, name.encode()).decode() for name in names}
        finally:
            lib.bel_checkpoint_close(handle)
        self.params = {name[len("param."):]: text for name, text in self.settings.items() if name.startswith("param.")}
        self.model = self.params.pop("model", "")
        if not lib.bel_model_find(self.model.encode()):
            raise FailedPreconditionError(
                f"{self.folder}: a checkpoint does not contain its model function, and this one is of "
                f"{self.model or 'a program'}, which does not come with Belfry; hint: export the model (belfry export "
                "--package …, Estimator.export) and load the export")
        text = self.settings.get("table")
        self.columns: Optional[Columns] = None if text is None else Columns.parse(text, self.folder)

    def features(self) -> List[Dict[str, Any]]:
        """The features of the training, in their order; "scale": their numbers are those of the files times this.
        A table's weights are none of a prediction."""
        return [item for item in json.loads(self.settings.get("features", "[]")) if item.get("role") == "feature"
                and not (self.columns is not None and item["name"] == "weight")]

    def estimator(self, **settings: Any) -> Estimator:
        """An estimator of the model with the parameters of its training. settings: fields of RunConfig."""
        return Estimator(self.model, os.path.dirname(self.folder), RunConfig(**settings), self.params)

    def predictor(self, estimator: Estimator) -> Any:
        """bel_predictor of this checkpoint, which the caller destroys before the estimator."""
        features = structs.sequence("const bel_feature *", [
            {"name": item["name"], "dtype": numpy_dtype(getattr(lib, "BEL_DTYPE_" + item["dtype"].upper())),
             "shape": item["shape"]} for item in self.features()], "features")
        if not features:
            raise FailedPreconditionError(f"{self.folder}: a version that did not record features wrote it; hint: "
                                          "train one more step")
        return lib.make("bel_estimator_predictor", estimator.handle, features, len(features), os.fsencode(self.folder))
