"""The Estimator of Python: graphs against numpy, trainings, datasets, hooks, loops, errors. tests/cli/python_jobs.sh
calls it. usage: test_estimator.py DIGITS_TRAIN DIGITS_EVAL   (the CSV files of examples/data)"""
import csv
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest

import numpy as np

import belfry
from belfry import layers, metrics, ops, structs, summaries
from belfry.library import lib

TRAIN_CSV, EVAL_CSV = sys.argv[1], sys.argv[2]


def read_digits(path):
    with open(path, encoding="utf-8") as file:
        rows = np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]], np.float32)
    return np.ascontiguousarray(rows[:, :64]) / 16, rows[:, 64].astype(np.int64)


X, Y = read_digits(TRAIN_CSV)
EVAL_X, EVAL_Y = read_digits(EVAL_CSV)
DIGITS = belfry.Dataset.from_memory(X, Y)
HELD = belfry.Dataset.from_memory(EVAL_X, EVAL_Y)


def classify(ctx, x=None, units=16, name="hidden"):
    """A small classifier of the digits."""
    hidden = layers.dense(ctx.features["x"] if x is None else x, units, name, activation="relu")
    logits = layers.dense(hidden, 10, "logits")
    if ctx.labels is None:
        return belfry.EstimatorSpec(predictions=ops.softmax(logits))
    accuracy = metrics.accuracy(ctx.labels, ops.arg_max(logits))
    loss = ops.mean(ops.softmax_cross_entropy(logits, ctx.labels))
    return belfry.EstimatorSpec(loss=loss, optimizer=belfry.Adam(0.01), metrics={"accuracy": accuracy})


def batches(data=DIGITS, size=32):
    return lambda: data.shuffle(seed=1).repeat().batch(size)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="belfry-estimator-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def new(self, model_fn=classify, params=None, **config):
        """An estimator with a new folder."""
        self.count += 1
        estimator = belfry.Estimator(model_fn, os.path.join(self.folder, str(self.count)),
                                     belfry.RunConfig(num_threads=1, report=False, **config), params)
        self.addCleanup(estimator.close)
        return estimator

    def train(self, model_fn=classify, evals=(), input_fn=None, max_steps=5, **fields):
        """The result of a training in a new folder."""
        spec = belfry.TrainSpec(input_fn or batches(), max_steps=max_steps, **fields)
        return belfry.train_and_evaluate(self.new(model_fn), spec, *evals)

    def raises(self, error, call, where=None):
        """`call` raises this very object, from an error of the library, and its traceback has the function `where`."""
        try:
            call()
        except BaseException as caught:
            self.assertIs(caught, error)
            frames = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
            cause = caught.__cause__
        else:
            self.fail("no exception")
        if where is not None:
            self.assertIn(where, frames)
            self.assertIn(str(error), str(cause))
        error.__traceback__ = error.__cause__ = None

    def refuses(self, words, call, kind=belfry.InvalidArgumentError):
        with self.assertRaisesRegex(kind, words):
            call()


def evaluate_graph(case, build, x):
    """The numbers of values that `build(x)` returns by name, for the rows of an array."""
    def model_fn(ctx):
        value = ctx.features["x"]
        if ctx.mode == "predict":
            return belfry.EstimatorSpec(predictions=build(value))
        w = ops.variable("w", [1], "ones")
        return belfry.EstimatorSpec(loss=ops.mean(w * 1.0) + 0.0 * ops.mean(value), optimizer=belfry.SGD(0.1))
    data = belfry.Dataset.from_memory(x)
    estimator = case.new(model_fn)
    estimator.train(lambda: data.batch(len(x)), max_steps=1)
    return estimator.predict(lambda: data.batch(len(x)))


class Graphs(Case):
    x = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)

    def test_operators_are_numpys(self):
        functions = {
            "sum": lambda x: x + 1.5 + x, "difference": lambda x: 2 - x - 1, "product": lambda x: 3 * x * x,
            "quotient": lambda x: x / 2 + 1 / (x * x + 1), "power": lambda x: (x * x + 1) ** 1.5, "minus": lambda x: -x,
            "row": lambda x: x * np.arange(6, dtype=np.float32), "abs": abs,
            "matrix": lambda x: x @ np.ones((6, 2), np.float32), "less": lambda x: (x < 0) | (x >= 1),
            "greater": lambda x: ~((x > 0) & (x <= 1)), "equal": lambda x: (x == x) ^ (x != x),
        }
        found = evaluate_graph(self, lambda x: {name: f(x) for name, f in functions.items()}, self.x)
        for name, function in functions.items():
            expected = function(self.x)
            self.assertEqual(found[name].dtype, expected.dtype, name)
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, err_msg=name)

    def test_slices_are_numpys(self):
        x = np.random.default_rng(2).standard_normal((5, 6, 3, 2)).astype(np.float32)
        functions = {
            "range": lambda x: x[:, 1:3], "one": lambda x: x[:, 2], "last": lambda x: x[:, -1, :, 0],
            "backwards": lambda x: x[:, ::-1], "steps": lambda x: x[:, 4:0:-2], "ellipsis": lambda x: x[..., 1],
            "new": lambda x: x[:, None, 1, :, None], "middle": lambda x: x[:, 1:, ..., :1], "all": lambda x: x[:],
            "newlast": lambda x: x[..., None],
        }
        found = evaluate_graph(self, lambda x: {name: f(x) for name, f in functions.items()}, x)
        for name, function in functions.items():
            np.testing.assert_array_equal(found[name], function(x), err_msg=name)

    def test_operations_with_lists_options_and_further_results(self):
        def build(x):
            values, indices = ops.top_k(x, 2)
            first, second = ops.split(x, 1, [2, 4])
            image = ops.reshape(x, [-1, 1, 2, 3])
            return {"values": values, "indices": indices, "first": first, "second": second,
                    "sums": ops.reduce_sum(x, 1, keepdims=True), "joined": ops.concat([second, first], 1),
                    "turned": ops.transpose(image, [0, 3, 2, 1]), "pooled": ops.max_pool(image, [2, 2], strides=[2, 1]),
                    "padded": ops.pad(x, [0, 1], [0, 0], value=7.0), "chosen": ops.where(x > 0, x, 0.0),
                    "gradient": ops.gradients(ops.reduce_sum(x * x), [x])[0], "whole": ops.cast(x * 10.0, np.int64),
                    "looked": ops.gather(ops.constant([5.0, 6.0]), ops.cast(x > 0, np.int64)[:, 0])}
        found, x = evaluate_graph(self, build, self.x), self.x
        order = np.argsort(-x, axis=1)[:, :2]
        image = x.reshape(-1, 1, 2, 3)
        for name, expected in {
                "values": np.take_along_axis(x, order, 1), "indices": order, "first": x[:, :2], "second": x[:, 2:],
                "joined": np.concatenate([x[:, 2:], x[:, :2]], 1), "turned": image.transpose(0, 3, 2, 1),
                "pooled": np.maximum(image[..., :-1], image[..., 1:]).max(2, keepdims=True),
                "padded": np.pad(x, ((0, 0), (1, 0)), constant_values=7), "chosen": np.maximum(x, 0),
                "gradient": 2 * x, "whole": (x * np.float32(10)).astype(np.int64),
                "looked": np.where(x[:, 0] > 0, 6, 5)}.items():
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
        np.testing.assert_allclose(found["sums"], x.sum(1, keepdims=True), rtol=1e-5)

    def test_every_operation_is_made_from_the_interface(self):
        names = dir(ops)
        self.assertGreater(len(names), 110)
        for name in names:
            self.assertGreaterEqual(len(inspect.signature(getattr(ops, name)).parameters), 0, name)
            self.assertTrue(getattr(ops, name).__doc__, name)
        for function in ops.functions():  # C reads beyond a list that is too short
            words = " ".join(lib.parameters(function))
            for name in re.findall(r"const int64_t \*(\w+)", words):
                by_hand = function in ("bel_slice", "bel_split")
                self.assertTrue(by_hand or name in ops._LENGTHS or "count" in words, f"{function}: {name}")
        of_c = {re.sub("^bel_|_at$", "", name) for name in lib.headers["belfry/ops.h"]}
        reached = set(names) | set(dir(layers)) | {"slice", "and", "or", "xor", "not"}
        self.assertEqual(of_c - reached, set())
        with self.assertRaisesRegex(AttributeError, "did you mean softmax"):
            ops.softmaks

    def test_mistakes_in_a_graph_raise_at_their_line(self):
        cases = {
            lambda x: x @ x: "MatMul.*inner dimensions differ", lambda x: bool(x > 0): "neither true nor false",
            lambda x: list(x): "cannot be iterated", lambda x: x[:, 99]: "index 99 is out of range for axis 1",
            lambda x: x[0]: "index 0 is out of range for axis 0",
            lambda x: x[0, 0, 0]: "at most 2 indices and one ellipsis, got 3",
            lambda x: x["a"]: "expected an integer or a slice",
            lambda x: ops.relu(3.0): "expected a value of the graph",
            lambda x: ops.max_pool(x, [2]): "kernel: expected 0 numbers",
            lambda x: ops.transpose(x, [1]): "permutation: expected 2 numbers",
            lambda x: ops.cast(x, "words"): "to: expected one of float32",
            lambda x: ops.reduce_sum(x, "1"): "axes: expected a list", lambda x: ops.relu(): "missing a required arg",
            lambda x: ops.combine_rows(x, x, combiner="avg"): "combiner: expected sum, mean, sqrtn, got 'avg'",
            lambda x: ops.cast(x, np.int64) / 2: "/ is for floats", lambda x: ops.cast(x, np.int64) + 0.5: "int64",
            lambda x: ops.conv(x[:, None], x, stride=[1]): "there is no stride; did you mean strides",
            lambda x: x + "a": "expected numbers", lambda x: ops.variable("v", [None, 3]): "v",
        }
        for call, words in cases.items():
            def model_fn(ctx, call=call):
                call(ctx.features["x"])
                raise AssertionError("no error with " + words)
            with self.subTest(words):
                self.refuses(words, lambda: self.train(model_fn))

    def test_features_by_name(self):
        def model_fn(ctx):
            self.assertEqual((ctx.features.get("z"), "x" in ctx.features, "label" in ctx.features), (None, True, False))
            self.refuses("taken by name", lambda: list(ctx.features))
            self.assertEqual((ctx.features["x"].shape, ctx.batch_size, ctx.labels.dtype), ((None, 64), 32, np.int64))
            return classify(ctx, ctx.feature)
        self.train(model_fn, max_steps=1)

    def test_values_of_another_function(self):
        kept = []

        def model_fn(ctx):
            spec = classify(ctx, kept[0] if kept else None)
            kept.append(ctx.features["x"])
            return spec
        self.refuses("belongs to another call of a model function",
                     lambda: self.train(model_fn, [belfry.EvalSpec(lambda: HELD.batch(99))]),
                     belfry.FailedPreconditionError)
        self.assertIn("earlier graph", repr(kept[0]))
        self.refuses("build a graph: call them in a model function", lambda: kept[0] + 1,
                     belfry.FailedPreconditionError)

    def test_objects_are_valid_during_their_call(self):
        kept = {}

        class Keep(belfry.Hook):
            def begin(self, context, step):
                kept["hook"] = context

        def model_fn(ctx):
            kept["context"] = ctx
            return classify(ctx, ctx.params.get("other"))

        def run(replicator):
            kept["loop"] = replicator
            replicator.run("step")

        def keep(record):
            kept["record"] = record
            return {}
        data = lambda: DIGITS.map(keep).repeat().batch(32)
        self.train(model_fn, input_fn=data, hooks=[Keep()], loop=belfry.Loop({"step": model_fn}, run))
        for call in (lambda: kept["hook"].request_stop(), lambda: kept["loop"].step, lambda: kept["record"]["x"],
                     lambda: kept["record"].number):
            self.refuses("was valid only during the call", call, belfry.FailedPreconditionError)
        for call in (lambda: kept["context"].labels, lambda: kept["context"].features["x"],
                     lambda: kept["context"].batch_size, lambda: "x" in kept["context"].features):
            self.refuses("build a graph", call, belfry.FailedPreconditionError)

    def test_layers(self):
        def model_fn(ctx):
            x = ctx.features["x"]
            with ops.scope("inner"):
                images = layers.conv_2d(ops.reshape(x, [-1, 1, 8, 8]), 4, 3, 1, True, "conv", activation="relu")
                images = layers.batch_norm(images, "norm", momentum=0.5)
            steps = layers.layer_norm(ops.reshape(images, [-1, 16, 16]), "layer")
            steps = layers.group_norm(steps, 4, "group")
            outputs, last = layers.lstm(steps, units=8, name="lstm")
            outputs, last = layers.gru(outputs, None, units=8, name="gru")
            attended = layers.multi_head_attention(outputs, heads=2, name="attention", causal=True)
            return classify(ctx, last + ops.reduce_mean(attended, [1]))
        result = self.train(model_fn)
        self.assertEqual(result.global_step, 5)
        checkpoint = os.path.join(self.folder, "1")
        names = subprocess.run([os.environ["BELFRY"], "inspect", checkpoint], capture_output=True, text=True).stdout
        for name in ("inner/conv/kernel", "inner/norm/mean", "layer/scale", "lstm/recurrent_kernel", "gru/bias",
                     "attention/query_kernel"):
            self.assertIn(name, names)

    def test_tables_by_ids(self):
        ids = np.array([[3, 7, -1], [4, -1, -1], [3, 3, 9]], np.int64)
        data = belfry.Dataset.from_memory({"ids": ids, "y": np.ones(3, np.float32)}, "y")

        def model_fn(ctx):
            bag = layers.embedding_bag("table", ctx.features["ids"], width=4, initializer=("uniform", 0.5))
            return belfry.EstimatorSpec(loss=ops.mean(ops.squared_error(ops.reduce_sum(bag, [1]), ctx.labels)),
                                        optimizer={"table": belfry.Adagrad(0.1), None: belfry.SGD(0.1)})
        self.assertEqual(self.train(model_fn, input_fn=lambda: data.repeat().batch(3)).global_step, 5)


class Settings(Case):
    def test_config(self):
        config = belfry.RunConfig(num_gpus=2, mode="async", towers_of=[1, 2], seed=7)
        self.assertEqual((config.num_gpus, config.mode, config.towers_of, config.num_workers), (2, "async", [1, 2], 2))
        self.assertEqual(config.keep_checkpoint_max, 5)
        config.seed = 8
        self.assertIn("seed=8", repr(config))
        self.assertEqual(config.flags(["file", "--seed", "9", "--no_report"]), ["file"])
        self.assertEqual((config.seed, config.report), (9, False))
        self.refuses("there is no num_gpu; did you mean num_gpus", lambda: belfry.RunConfig(num_gpu=2))
        self.refuses("seed: expected an integer from 0 on", lambda: belfry.RunConfig(seed=-1))
        self.refuses("report: expected True or False, got 1", lambda: belfry.RunConfig(report=1))
        self.refuses("mode: expected sync, async, bounded", lambda: belfry.RunConfig(mode="fast"))
        self.refuses("did you mean --num_workers", lambda: config.flags(["--num_worker", "2"]))
        with self.assertRaisesRegex(AttributeError, "did you mean seed"):
            config.sead

    def test_every_field_of_the_options_can_be_read(self):
        config = belfry.RunConfig()
        for name in structs.settings_of("bel_run_config"):
            getattr(config, name)
        for kind in lib.enums:
            self.assertGreater(len(structs.enumerators(kind)), 1, kind)

    def test_estimators(self):
        estimator = self.new(params={"units": [8, 4], "rate": 0.5, "on": True, "name": "n", "no": None})
        self.assertEqual((estimator.role, estimator.rank, estimator.size, estimator.is_chief, estimator.replicas),
                         ("master", 0, 1, True, 1))
        self.assertEqual(self.new(num_workers=2).batch_per_replica(10), 5)
        for words, call in {
                "expected a function, got int": lambda: belfry.Estimator(3),
                "config: expected a belfry.RunConfig": lambda: belfry.Estimator(classify, "x", {"seed": 1}),
                "model_dir: expected a, as in config; got b":
                    lambda: belfry.Estimator(classify, "b", belfry.RunConfig(model_dir="a")),
                "params\\['a'\\]: expected a text": lambda: belfry.Estimator(classify, "b", params={"a": object()}),
                "num_gpus must be in": lambda: self.new(num_gpus=-1),
                "train_and_evaluate: expected a belfry.Estimator, got 1": lambda: belfry.train_and_evaluate(1, 2),
                "expected a belfry.EvalSpec, got 3":
                    lambda: belfry.train_and_evaluate(estimator, belfry.TrainSpec(batches()), 3),
                "hint: lambda: dataset": lambda: belfry.TrainSpec(DIGITS),
                "there is no max_step; did you mean max_steps": lambda: belfry.TrainSpec(batches(), max_step=3),
                "there is no input_user": lambda: belfry.TrainSpec(batches(), input_user=3),
                "there is no step; did you mean steps": lambda: belfry.EvalSpec(batches(), step=3),
                "Exporter.kind: expected latest, best, final": lambda: belfry.Exporter("x", "newest"),
                "params: expected a dict of values by name, got list":
                    lambda: belfry.Estimator(classify, "b", params=[1]),
                "adam: there is no learning_rat; did you mean learning_rate": lambda: belfry.Adam(learning_rat=.1),
                "sgd.learning_rate: expected a number, got none": lambda: belfry.SGD(),
                "adam: there is no beta; did you mean beta": lambda: belfry.Adam(0.1, beta=2),
                "TrainSpec.hooks: expected a belfry.Hook": lambda: belfry.TrainSpec(batches(), hooks=[print]),
                "TrainSpec.loop: expected a belfry.Loop": lambda: belfry.TrainSpec(batches(), loop=print),
                "EvalSpec.exporters: expected a belfry.Exporter":
                    lambda: belfry.EvalSpec(batches(), exporters=["best"])}.items():
            with self.subTest(words):
                self.refuses(words, call)

    def test_parameters(self):
        def model_fn(ctx):
            self.assertEqual((ctx.params["units"], ctx.params.get("other", 3), "units" in ctx.params), ([16], 3, True))
            with self.assertRaisesRegex(KeyError, "did you mean units"):
                ctx.params["unit"]
            return classify(ctx, units=ctx.params["units"][0])
        self.new(model_fn, {"units": [16]}).train(batches(), max_steps=1)

    def test_use_after_close(self):
        estimator = self.new()
        estimator.close()
        estimator.close()
        self.refuses("the estimator is closed", lambda: estimator.train(batches(), max_steps=1))
        self.refuses("the estimator is closed", lambda: estimator.rank)


class Trainings(Case):
    def test_train_evaluate_predict_export(self):
        estimator, keep = self.new(), belfry.EvalSpec(lambda: HELD.batch(100), every_steps=50, name="held",
                                                      exporters=[belfry.Exporter("best", metric="accuracy")])
        result = belfry.train_and_evaluate(estimator, belfry.TrainSpec(batches(), max_steps=150), keep)
        self.assertGreater(result["accuracy"], 0.9)
        self.assertEqual(result.metrics["accuracy"], result.evaluations["held"]["accuracy"])
        self.assertEqual(dict(result)["global_step"], 150)
        self.assertRegex(repr(result), r"^<belfry.Result at step 150: loss=[\d.]+, accuracy=[\d.]+>$")
        self.assertEqual(len(result.digest), 32)
        again = estimator.evaluate(lambda: HELD.batch(64))
        self.assertEqual((again["accuracy"], again.examples), (result["accuracy"], len(EVAL_X)))
        self.assertAlmostEqual(again.loss, result.loss, 6)
        predicted = estimator.predict(lambda: HELD.batch(64))["predictions"]
        self.assertEqual((predicted.shape, predicted.dtype), ((len(EVAL_X), 10), np.float32))
        self.assertAlmostEqual((predicted.argmax(1) == EVAL_Y).mean(), result["accuracy"])
        estimator.export(os.path.join(self.folder, "export"))
        with belfry.Predictor(os.path.join(self.folder, "export")) as model:
            np.testing.assert_array_equal(model(EVAL_X), predicted)
        self.assertTrue(os.listdir(os.path.join(estimator.model_dir, "export", "best")))
        self.refuses("no checkpoint", lambda: self.new().evaluate(batches()), belfry.NotFoundError)
        self.refuses("at least one example", lambda: estimator.predict(lambda: HELD.take(0).batch(64)))

    def test_predictions_of_all_kinds(self):
        def model_fn(ctx):
            if ctx.mode != "predict":
                return classify(ctx)
            x = ctx.features["x"]
            classify(ctx)  # its variables
            return belfry.EstimatorSpec(predictions={"same": x, "first": ops.arg_max(x), "two": x[:, :2] * 2.0})
        estimator = self.new(model_fn)
        estimator.train(batches(), max_steps=1)
        found = estimator.predict(lambda: HELD.batch(100))  # the last batch is smaller
        self.assertEqual(list(found), ["same", "first", "two"])
        np.testing.assert_array_equal(found["same"], EVAL_X)
        np.testing.assert_array_equal(found["first"], EVAL_X.argmax(1))
        np.testing.assert_array_equal(found["two"], EVAL_X[:, :2] * 2)
        found["first"][0] = 3  # they belong to the caller

    def test_predictions_that_differ_in_shape(self):
        def model_fn(ctx):
            w, x = ops.variable("w", [1], "ones"), ctx.features["x"]
            return belfry.EstimatorSpec(predictions=x * w, loss=ops.mean(w * 1.0) + 0.0 * ops.mean(x),
                                        optimizer=belfry.SGD(0.1))
        lengths = (2, 2, 3, 3, 2)
        data = belfry.Dataset.from_function(lambda number: {"x": np.full(lengths[number], number, np.float32)}, 5)
        estimator = self.new(model_fn)
        estimator.train(lambda: data.padded_batch(2), max_steps=1)
        found = estimator.predict(lambda: data.padded_batch(2))["predictions"]
        self.assertEqual([row.shape for row in found], [(length,) for length in lengths])
        self.assertEqual([round(float(row[0] / found[1][0])) for row in found], [0, 1, 2, 3, 4])

    def test_a_report_shows_in_notebooks(self):
        estimator = belfry.Estimator(classify, os.path.join(self.folder, "report"))
        result = estimator.train(batches(), max_steps=3)
        shown = result._repr_html_()
        self.assertIn("<td>loss</td>", shown)
        self.assertIn("<iframe srcdoc=\"&lt;!", shown)
        self.assertIn("svg", shown)

    def test_the_same_bits_from_arrays_files_and_after_a_resume(self):
        digest = self.train(max_steps=40).digest
        files = belfry.Dataset.from_csv(TRAIN_CSV, label_column="digit", class_count=10, scale=1 / 16)
        self.assertEqual(self.train(max_steps=40, input_fn=batches(files)).digest, digest)
        self.assertNotEqual(self.train(max_steps=40, input_fn=batches(size=16)).digest, digest)
        made = belfry.Dataset.from_function(lambda i: {"x": X[i], "label": Y[i]}, len(X))
        self.assertEqual(self.train(max_steps=40, input_fn=batches(made)).digest, digest)
        estimator = self.new()
        estimator.train(batches(), max_steps=13)
        self.assertEqual(estimator.train(batches(), steps=27).digest, digest)

    def test_a_generator_resumes_in_the_middle_of_an_epoch(self):
        begun = []

        def rows(epoch):
            begun.append(epoch)
            for number in np.random.default_rng(epoch).permutation(200):
                yield {"x": X[number], "label": int(Y[number])}
        data = belfry.Dataset.from_generator(rows, 200)
        digest = self.train(max_steps=20, input_fn=lambda: data.repeat().batch(32)).digest
        self.assertLess({0, 1, 2, 3}, set(begun) | {-1})
        estimator = self.new()
        estimator.train(lambda: data.repeat().batch(32), max_steps=9)
        self.assertEqual(estimator.train(lambda: data.repeat().batch(32), max_steps=20).digest, digest)

    def test_several_workers_and_towers_have_the_bits_of_one_process(self):
        digests = {self.new(**config).train(batches(size=16), max_steps=20).digest
                   for config in ({"num_workers": 2}, {"num_gpus": 2}, {"num_workers": 2, "parameter_server_count": 2})}
        self.assertEqual(len(digests), 1)

    def test_early_stopping_keep_best_warm_start_and_initial_values(self):
        evals = [belfry.EvalSpec(lambda: HELD.batch(100), every_steps=5)]
        result = self.train(evals=evals, max_steps=500, keep_best={"metric": "accuracy"},
                            early_stopping={"patience": 1, "metric": "accuracy", "min_delta": 2.0})
        self.assertLess(result.global_step, 500)
        first = os.path.join(self.folder, "1")
        self.assertTrue(os.path.exists(os.path.join(first, "best.json")))
        renamed = self.train(lambda ctx: classify(ctx, name="other"), evals, max_steps=1,
                             warm_start={"checkpoint": first, "names": {"hidden/*": "other/*"}})
        self.assertLess(abs(renamed.loss - result.loss), 0.5)
        seen = {}

        def init_fn(name, values):
            seen[name] = values.copy()
            values[:] = 0
        zero = self.train(evals=evals, max_steps=1, init_fn=init_fn)
        self.assertEqual({name: value.shape for name, value in seen.items()},
                         {"hidden/kernel": (64, 16), "hidden/bias": (16,), "logits/kernel": (16, 10),
                          "logits/bias": (10,)})
        self.assertGreater(np.abs(seen["hidden/kernel"]).max(), 0)
        self.assertAlmostEqual(zero.loss, np.log(10), 1)

    def test_metrics_summaries_and_several_losses(self):
        def model_fn(ctx):
            spec = classify(ctx)
            if ctx.mode == "predict":
                return spec
            ones = ops.cast(ctx.labels > 4, np.float32)
            x = ctx.features["x"][:, 0]
            counts = ops.reduce_sum(ops.one_hot(ctx.labels, 10), [0])
            summaries.scalar("share", ops.mean(ones))
            summaries.histogram("pixels", ctx.features["x"])
            summaries.confusion(ctx.labels, ctx.labels, 10)
            return belfry.EstimatorSpec(
                loss=spec.loss, losses={"extra": (ops.mean(ones), 0.0)}, optimizer=spec.optimizer,
                metrics={"mean": metrics.mean(ones), "rmse": metrics.root_mean_squared_error(ones, ones * 0.0),
                         "auc": metrics.auc(ones, ones), "precision": metrics.precision(ones, x * 0.0 + 1.0),
                         "recall": metrics.recall(ones, ones), "f1": metrics.f1(ones, ones),
                         "top_k": metrics.top_k(ctx.labels, ops.one_hot(ctx.labels, 10), 1),
                         "most": metrics.own(counts, lambda sums: sums.max())})
        result = self.train(model_fn, [belfry.EvalSpec(lambda: HELD.batch(100))])
        share = (EVAL_Y > 4).mean()
        expected = {"mean": share, "rmse": np.sqrt(share), "auc": 1, "precision": share, "recall": 1, "f1": 1,
                    "top_k": 1,
                    "most": np.bincount(EVAL_Y).max(), "extra": share}
        self.assertEqual(set(result.metrics), set(expected))
        for name, value in expected.items():
            self.assertAlmostEqual(result[name], value, 5, name)

    def test_a_model_by_its_name(self):
        def dnn(ctx):
            logits = layers.dense(layers.dense(ctx.feature, 8, "dense_0", activation="relu"), 10, "logits")
            return belfry.EstimatorSpec(loss=ops.mean(ops.softmax_cross_entropy(logits, ctx.labels)),
                                        optimizer=belfry.Adam(0.01))
        params = {"hidden_units": [8], "class_count": 10, "optimizer": "adam", "learning_rate": 0.01}
        named = self.new("dnn", params)
        result = named.train(batches(), max_steps=5)
        self.assertEqual(result.digest, self.train(dnn).digest)
        self.assertEqual(named.predict(lambda: HELD.batch(100))["predictions"].shape, (len(EVAL_X), 10))
        self.refuses("no model of this name comes with Belfry: dn$", lambda: belfry.Estimator("dn", self.folder))

    def test_the_level_of_the_log(self):
        written = os.path.join(self.folder, "stderr")
        self.assertEqual(belfry.set_log_level("error"), "info")
        kept = os.dup(2)
        with open(written, "wb") as file:
            os.dup2(file.fileno(), 2)
        try:
            self.train()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            self.assertEqual(belfry.set_log_level("info"), "error")
        self.assertEqual(os.path.getsize(written), 0)
        self.refuses("set_log_level: expected error, warn, info, debug, got 'loud'",
                     lambda: belfry.set_log_level("loud"))

    def test_one_training_at_a_time(self):
        errors = []

        class Second(belfry.Hook):
            def begin(hook, context, step):
                try:
                    self.train()
                except belfry.FailedPreconditionError as error:
                    errors.append(str(error))
                try:
                    context.estimator.evaluate(batches())
                except belfry.FailedPreconditionError as error:
                    errors.append(str(error))
                try:
                    belfry.Classifier(num_epochs=1).fit([[0.0], [1.0]], [0, 1])  # it would wait for ever
                except belfry.FailedPreconditionError as error:
                    errors.append(str(error))
        self.train(hooks=[Second()])
        self.assertIn("this process trains already", errors[0])
        self.assertIn("another call uses this estimator", errors[1])
        self.assertIn("a function that a training calls began another training", errors[2])

    def test_a_request_to_stop_and_other_threads(self):
        class Stop(belfry.Hook):
            def after_step(self, context, report):
                belfry.request_stop()
        results = []
        thread = threading.Thread(target=lambda: results.append(self.train(hooks=[Stop()], max_steps=10 ** 9)))
        thread.start()
        thread.join()
        self.assertTrue(results[0].interrupted)
        self.assertTrue(self.train(hooks=[Stop()], max_steps=10 ** 9).interrupted)

    def test_signals_save_and_raise(self):
        class Interrupt(belfry.Hook):
            def __init__(self, number):
                self.number = number

            def after_step(self, context, report):
                if report.step == 3:
                    os.kill(os.getpid(), self.number)
        before = signal.getsignal(signal.SIGINT)
        estimator = self.new()
        for number, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)):
            estimator = self.new()
            with self.assertRaises(kind) as caught:
                estimator.train(batches(), max_steps=10 ** 9, hooks=[Interrupt(number)])
            if kind is SystemExit:
                self.assertEqual(caught.exception.code, 143)
            self.assertIs(signal.getsignal(signal.SIGINT), before)
            with self.assertRaises(KeyboardInterrupt):  # it is Python's again
                os.kill(os.getpid(), signal.SIGINT)
            step = estimator.evaluate(lambda: HELD.batch(100)).global_step
            self.assertEqual(estimator.train(batches(), max_steps=step + 2).global_step, step + 2)

    def test_interrupts_end_evaluations_and_predictions(self):
        estimator, before = self.new(), signal.getsignal(signal.SIGINT)
        estimator.train(batches(), max_steps=1)

        def endless():
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            return HELD.repeat(10 ** 6).batch(2)
        for call in (estimator.evaluate, estimator.predict):
            with self.assertRaises(KeyboardInterrupt):
                call(endless)
            self.assertIs(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(estimator.evaluate(lambda: HELD.batch(100)).global_step, 1)

    def test_a_second_interrupt_ends_the_process(self):
        program = (f"import sys; sys.argv[1:] = {[TRAIN_CSV, EVAL_CSV]!r}\n"
                   f"sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                   "import os, signal, test_estimator as t, belfry\n"
                   "class Twice(belfry.Hook):\n"
                   "    def begin(self, context, step):\n"
                   "        os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)\n"
                   f"belfry.Estimator(t.classify, {self.folder!r}).train(t.batches(), max_steps=9, hooks=[Twice()])\n")
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(found.returncode, 130, found.stderr)
        self.assertNotIn("Traceback", found.stderr)

    def test_a_forked_child_is_refused(self):
        self.train(max_steps=1)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.train(max_steps=1)
            except BaseException as error:
                os.write(writer, f"{type(error).__name__}: {error}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as file:
            self.assertRegex(file.read(), "FailedPreconditionError: process .* was forked from process .*spawn")


class Hooks(Case):
    def test_calls_and_state(self):
        class Count(belfry.Hook):
            name = "count"
            every_steps = 2

            def __init__(self):
                self.state = np.zeros(2, np.int64)
                self.calls = []

            def begin(self, context, step):
                self.calls.append(("begin", step, int(self.state[0])))

            def after_step(self, context, report):
                self.state[0] += report.step
                self.calls.append(("after_step", report.step, np.isfinite(report.loss)))
                context.summary_text("note", f"step {report.step}")

            def after_save(self, context, step, folder):
                self.calls.append(("after_save", step, os.path.basename(folder)))

            def after_evaluation(self, context, name, result):
                self.calls.append(("after_evaluation", name, 0 <= result["accuracy"] <= 1))

            def end(self, context, result):
                self.calls.append(("end", result.global_step, result.digest != ""))
        estimator, first, second = self.new(), Count(), Count()
        held = belfry.EvalSpec(lambda: HELD.batch(100), name="held")
        belfry.train_and_evaluate(estimator, belfry.TrainSpec(batches(), max_steps=4, hooks=[first]), held)
        self.assertEqual(sorted(first.calls), sorted([
            ("begin", 0, 0), ("after_step", 2, True), ("after_step", 4, True),
            ("after_save", 4, "ckpt-00000004"), ("after_evaluation", "eval_held", True), ("end", 4, True)]))
        belfry.train_and_evaluate(estimator, belfry.TrainSpec(batches(), max_steps=6, hooks=[second]))
        self.assertEqual(second.calls[:2], [("begin", 4, 6), ("after_step", 6, True)])

    def test_workers_and_a_normal_end(self):
        lock, seen = threading.Lock(), []

        class Worker(belfry.Hook):
            def worker_before_step(self, context, step):
                with lock:
                    seen.append(("before", step))

            def worker_after_step(self, context, report):
                with lock:
                    seen.append(("after", report.step, report.examples))

        class Stop(belfry.Hook):
            def begin(self, context, step):
                context.request_stop()
        self.train(hooks=[Worker()], max_steps=2)
        self.assertEqual(seen, [("before", 0), ("after", 0, 32), ("before", 1), ("after", 1, 32)])
        result = self.train(hooks=[Stop()])
        self.assertEqual((result.global_step, result.interrupted), (0, False))

    def test_a_state_that_cannot_be_kept(self):
        class Bad(belfry.Hook):
            state = [1, 2]
        self.refuses("Bad.state: expected a numpy array", lambda: self.train(hooks=[Bad()]))

    def test_a_name_that_is_almost_a_hooks(self):
        for wrong, meant in (("after_stp", "after_step"), ("before_step", "worker_before_step"), ("on_begin", "begin")):
            with self.subTest(wrong):
                self.refuses(f"H.{wrong}: .*did you mean {meant}", lambda: type("H", (belfry.Hook,), {wrong: print}))
        type("H", (belfry.Hook,), {"send": print, "_after_stp": print, "before_steps": 3, "after_step": print})

    def test_exporters_with_a_function(self):
        seen = []

        def better(best, now):
            seen.append((best.global_step, now.global_step))
            return True
        self.train(evals=[belfry.EvalSpec(lambda: HELD.batch(100), every_steps=2,
                                          exporters=[belfry.Exporter("own", is_better=better, keep=2)])], max_steps=6)
        self.assertEqual(seen, [(2, 4), (4, 6)])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "1", "export", "own"))), ["4", "6"])


class Loops(Case):
    def functions(self):
        def slow(ctx):
            spec = classify(ctx)
            spec.optimizer = belfry.SGD(0.01)
            return spec

        def fast(ctx):
            spec = classify(ctx)
            spec.returns = {"labels": (ops.mean(ops.cast(ctx.labels, np.float32))[None], "replicas")}
            return spec
        return {"slow": slow, "fast": (fast, "logits/*,hidden/*")}

    def test_steps_results_and_state(self):
        state, losses = np.zeros(1), []

        def run(replicator):
            while replicator.step < 12:
                name = "fast" if state[0] % 3 == 2 else "slow"
                state[0] += 1
                result = replicator.run(name)
                losses.append((name, result.step, result.examples, list(result.values)))
            replicator.run("slow", wait=False)
        result = self.new(num_workers=2).train(batches(), loop=belfry.Loop(self.functions(), run, state))
        self.assertEqual(result.global_step, 13)
        self.assertEqual(losses[2], ("fast", 3, 64, ["labels"]))
        self.assertEqual([name for name, *_ in losses], ["slow", "slow", "fast"] * 4)

    def test_the_end_and_errors(self):
        def forever(replicator):
            while True:
                replicator.run("slow")
        result = self.new().train(batches(), max_steps=7, loop=belfry.Loop(self.functions(), forever))
        self.assertEqual(result.global_step, 7)
        error = ValueError("the loop fails")

        def fail(replicator):
            replicator.run("fast")
            raise error
        self.raises(error, lambda: self.new().train(batches(), loop=belfry.Loop(self.functions(), fail)), "fail")
        self.refuses("there is no fest; did you mean fast", lambda: self.new().train(
            batches(), loop=belfry.Loop(self.functions(), lambda replicator: replicator.run("fest"))))
        self.refuses("expected 1 to 8 functions, got 0", lambda: belfry.Loop({}, fail))

    def test_collectives_in_a_step(self):
        def model_fn(ctx):
            spec = classify(ctx)
            if ctx.mode != "predict":
                total = ops.all_reduce(ops.mean(spec.loss), "sum")
                first, second = ops.all_reduce_n([spec.loss, spec.loss * 2.0], "mean")
                gathered = ops.all_gather(spec.loss)
                mapped = ops.map_reduce([spec.loss * 0.0, spec.loss * 0.0 + 1.0], lambda item: item * 2.0)
                summaries.scalar("mapped", mapped)
                spec.loss = spec.loss + 0.0 * (total + first + second + ops.mean(gathered))
            return spec
        self.assertEqual(self.new(model_fn, num_workers=2).train(batches(), max_steps=3).global_step, 3)


class Datasets(Case):
    def rows(self, data, names=("x",), size=1000, **more):
        """The records of a dataset, read by a model that predicts its fields."""
        def model_fn(ctx):
            if ctx.mode == "predict":
                return belfry.EstimatorSpec(predictions={name: ctx.features[name] for name in names})
            return belfry.EstimatorSpec(loss=ops.mean(ops.variable("w", [1])), optimizer=belfry.SGD(0.1))
        estimator = self.new(model_fn)
        estimator.train(lambda: belfry.Dataset.from_memory(np.zeros(2, np.float32)).batch(2), max_steps=1)
        found = estimator.predict(lambda: data.padded_batch(size, **more) if more else data.batch(size))
        return [found[name].tolist() for name in names] if len(names) > 1 else found[names[0]].tolist()

    numbers = belfry.Dataset.from_memory(np.arange(10, dtype=np.int64))

    def test_stages(self):
        numbers = self.numbers
        cases = {
            "take": (numbers.take(3), [0, 1, 2]), "skip": (numbers.skip(8), [8, 9]),
            "shard": (numbers.shard(4, 1), [1, 5, 9]), "repeat": (numbers.take(2).repeat(2), [0, 1, 0, 1]),
            "filter": (numbers.filter(lambda record: record["x"] % 4 == 0), [0, 4, 8]),
            "map": (numbers.take(2).map(lambda record: {"x": record["x"] * 10 + record.number}), [0, 11]),
            "skipped": (numbers.take(4).map(self.only_even), [0, 2]),
            "flat": (numbers.take(4).flat_map(lambda r: int(r["x"]), lambda r, part: {"x": r["x"] * 10 + part}),
                     [10, 20, 21, 30, 31, 32]),
            "window": (numbers.window(3, 4, drop_remainder=True), [[0, 1, 2], [4, 5, 6]]),
            "cache": (numbers.take(2).cache(), [0, 1]),
            "concatenate": (belfry.Dataset.concatenate([numbers.take(1), numbers.skip(9)]), [0, 9]),
            "interleave": (belfry.Dataset.interleave([numbers.take(2), numbers.skip(8)]), [0, 8, 1, 9]),
            "sample": (belfry.Dataset.sample([numbers.take(2), numbers.skip(9)], [1, 1e-9]), [0, 1, 9]),
            "epochs": (numbers.take(1).repeat(2).map(lambda r: {"x": np.int64(r.epoch)}), [0, 1]),
        }
        for name, (data, expected) in cases.items():
            with self.subTest(name):
                self.assertEqual(self.rows(data), expected)
        shuffled = self.rows(numbers.shuffle(seed=3))
        self.assertEqual(sorted(shuffled), list(range(10)))
        self.assertNotEqual(shuffled, list(range(10)))
        self.assertEqual(shuffled, self.rows(numbers.shuffle(seed=3)))
        self.assertEqual(sorted(self.rows(numbers.shuffle_sliding(3, 1))), list(range(10)))
        both = belfry.Dataset.zip([numbers, numbers.enumerate("place", 5).map(lambda r: {"y": r["x"]}, drop=["x"])])
        self.assertEqual(self.rows(both.take(2), ("x", "y", "place")), [[0, 1], [0, 1], [5, 6]])

    @staticmethod
    def only_even(record):
        if record["x"] % 2 == 1:
            raise belfry.Skip
        return {"x": record["x"]}

    def test_sources(self):
        def write(name, text):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            return os.path.join(self.folder, name)
        table = write("t.csv", "a,b,c\n1,2,x\n3,4,yy\n")
        columns = belfry.Dataset.from_csv(table, columns={"a": np.int64, "c": str})
        texts = columns.map(lambda record: {"n": np.int64(len(record["c"])), "line": np.int64(
            record.origin.endswith(":2"))}, drop=["c"])
        self.assertEqual(self.rows(texts, ("a", "n", "line")), [[1, 3], [1, 2], [1, 0]])
        lines = belfry.Dataset.from_text([write("one.txt", "word\n\nlonger\n")])
        self.assertEqual(self.rows(lines.map(lambda r: {"x": np.int64(len(r["text"]))}, drop=["text"])), [4, 0, 6])
        padded = belfry.Dataset.from_generator(lambda epoch: ({"x": [1.0] * n} for n in (1, 3, 2)))
        self.assertEqual(self.rows(padded, shapes={"x": [4]}, values={"x": -1.0}),
                         [[1, -1, -1, -1], [1, 1, 1, -1], [1, 1, -1, -1]])
        with open(os.path.join(self.folder, "idx"), "wb") as file:
            file.write(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
        self.assertEqual(self.rows(belfry.Dataset.from_idx(os.path.join(self.folder, "idx"), scale=2)),
                         [[2, 4, 6], [8, 10, 12]])
        self.refuses("there is no lable_column; did you mean label_column",
                     lambda: belfry.Dataset.from_csv("x", lable_column="y"))

    def test_tfrecords(self):
        def crc(data):  # CRC-32C, masked as TFRecord files do
            value = 0xffffffff
            for byte in data:
                value ^= byte
                for _ in range(8):
                    value = (value >> 1) ^ (0x82f63b78 if value & 1 else 0)
            value ^= 0xffffffff
            return (((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff).to_bytes(4, "little")

        def message(number, data):  # a field of a protobuf message
            return bytes([number << 3 | 2, len(data)]) + data

        def example(**features):
            entries = b"".join(message(1, message(1, name.encode()) + message(2, value))
                               for name, value in features.items())
            return message(1, entries)
        floats = message(2, message(1, np.array([1.5, 2.5], "<f4").tobytes()))
        records = [example(f=floats, i=message(3, message(1, b"\x05"))), example(f=floats)]
        path = os.path.join(self.folder, "records")
        with open(path, "wb") as file:
            for record in records:
                length = len(record).to_bytes(8, "little")
                file.write(length + crc(length) + record + crc(record))
        features = {"f": {"dtype": np.float32, "shape": [2]}, "i": {"dtype": np.int64, "field": "j", "missing": 7}}
        self.assertEqual(self.rows(belfry.Dataset.from_tfrecord(path, features), ("f", "j")),
                         [[[1.5, 2.5], [1.5, 2.5]], [5, 7]])
        lengths = belfry.Dataset.from_tfrecord(path).map(lambda r: {"x": np.int64(len(r["record"]))}, drop=["record"])
        self.assertEqual(self.rows(lengths), [len(record) for record in records])

    def test_maps_of_the_library(self):
        path = os.path.join(self.folder, "lines")
        with open(path, "w", encoding="utf-8") as file:
            file.write("One word\nword\n")
        ids = self.rows(belfry.Dataset.from_text(path).map_words(max_count=3), ["ids"],
                        shapes={"ids": [3]}, values={"ids": -1})
        self.assertEqual((ids[0][1:], ids[1][1:]), ([ids[1][0], -1], [-1, -1]))
        self.refuses("map_words: there is no max_words; expected one of",
                     lambda: belfry.Dataset.from_text(path).map_words(max_words=3))

    def test_arrays_are_read_in_place_and_others_are_copied(self):
        x = np.arange(12, dtype=np.float32).reshape(6, 2)
        data = belfry.Dataset.from_memory(x)  # not copied
        x[0, 0] = 99
        self.assertEqual(self.rows(data.take(1)), [[99, 1]])
        self.assertEqual(self.rows(belfry.Dataset.from_memory(x[::2]))[1], [4, 5])
        self.assertEqual(self.rows(belfry.Dataset.from_memory(x.T.copy().T).skip(5)), [[10, 11]])

        class Frame(dict):  # what pandas frames have
            columns = property(lambda self: list(self))
        frame = Frame(a=np.arange(3), b=np.ones(3, np.float32), y=np.arange(3))
        self.assertEqual(self.rows(belfry.Dataset.from_memory(frame, "y"), ("a", "b")), [[0, 1, 2], [1, 1, 1]])
        for words, call in {
                "expected arrays with equal numbers of rows": lambda: belfry.Dataset.from_memory(x, np.zeros(3)),
                "expected numbers, got": lambda: belfry.Dataset.from_memory({"a": ["x"]}),
                "expected a row for each record, got a number": lambda: belfry.Dataset.from_memory(np.array(3)),
                "there is no z; expected one of": lambda: belfry.Dataset.from_memory({"a": x}, "z"),
                "expected elements of": lambda: belfry.Dataset.from_memory(x.astype(complex)),
                "buffer_size: expected an integer": lambda: self.numbers.shuffle("x"),
                "from_memory: x: expected an array without a mask":
                    lambda: belfry.Dataset.from_memory(np.ma.array([1, 2], mask=[0, 1])),
                "expected 1 weights, got 2": lambda: belfry.Dataset.sample([self.numbers], [1, 2])}.items():
            with self.subTest(words):
                self.refuses(words, call)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas (Debian: python3-pandas)")
        frame = pandas.DataFrame({"a": np.arange(3.0), "b": np.arange(3, 6.0), "y": [1, 0, 1]})
        self.assertEqual(self.rows(belfry.Dataset.from_memory(frame, "y"), ("a", "b")), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(self.rows(belfry.Dataset.from_memory(frame[["a", "b"]].to_numpy())), [[0, 3], [1, 4], [2, 5]])

    def test_labels_by_name(self):
        data = belfry.Dataset.from_memory({"x": X, "digit": Y}).labels(["digit"])

        def model_fn(ctx):
            logits = layers.dense(ctx.feature, 10, "logits")
            digit = ctx.label("digit")
            if digit is None:
                return belfry.EstimatorSpec(predictions=logits)
            return belfry.EstimatorSpec(loss=ops.mean(ops.softmax_cross_entropy(logits, digit)),
                                        optimizer=belfry.SGD(0.1))
        estimator = self.new(model_fn)
        estimator.train(batches(data), max_steps=2)
        self.assertEqual(estimator.predict(lambda: data.take(5).batch(5))["predictions"].shape, (5, 10))


class Exceptions(Case):
    def test_a_function_that_raises(self):
        error = KeyError("missing")

        def fail(*arguments):
            raise error

        class Hook(belfry.Hook):
            pass
        held = belfry.EvalSpec(lambda: HELD.batch(100))
        cases = {"model function": lambda: self.train(fail), "input function": lambda: self.train(input_fn=fail),
                 "map": lambda: self.train(input_fn=lambda: DIGITS.map(fail).batch(32)),
                 "init_fn": lambda: self.train(init_fn=fail),
                 "from_function": lambda: self.train(input_fn=batches(belfry.Dataset.from_function(fail, 9))),
                 "evaluation": lambda: self.train(evals=[belfry.EvalSpec(fail)])}
        for name in ("begin", "after_step", "after_save", "after_evaluation", "end", "worker_before_step",
                     "worker_after_step"):
            hook = type("Broken", (belfry.Hook,), {name: fail})()
            cases["hook " + name] = lambda hook=hook: self.train(hooks=[hook], evals=[held])
        trained = self.new()
        trained.train(batches(), max_steps=1)
        cases["evaluate"], cases["predict"] = lambda: trained.evaluate(fail), lambda: trained.predict(fail)
        for name, call in cases.items():
            with self.subTest(name):
                self.raises(error, call, "fail")
        for name, call in {  # these cannot return an error to the library
                "filter": lambda: self.train(input_fn=batches(DIGITS.filter(fail))),
                "metric": lambda: self.train(self.with_metric(fail), [held]),
                "is_better": lambda: self.train(evals=[belfry.EvalSpec(
                    lambda: HELD.batch(100), every_steps=1,
                    exporters=[belfry.Exporter("x", is_better=fail)])])}.items():
            with self.subTest(name):
                self.raises(error, call)

    @staticmethod
    def with_metric(result):
        def model_fn(ctx):
            spec = classify(ctx)
            if ctx.mode != "predict":
                spec.metrics = {"own": metrics.own(ops.reshape(spec.loss, [1]), result)}
            return spec
        return model_fn

    def test_any_exception(self):
        for error in (ValueError("x" * 3000), RuntimeError("two\nlines  and % signs %s"), KeyError(), SystemExit(3),
                      KeyboardInterrupt(), StopIteration("é€\udcff"), belfry.NotFoundError("mine\nhere")):
            def fail(*arguments, error=error):
                raise error
            with self.subTest(repr(error)[:40]):
                self.raises(error, lambda: self.train(fail))
                self.raises(error, lambda: self.train(input_fn=lambda: DIGITS.map(fail).batch(32)))

    def test_in_the_middle_of_training(self):
        error = RuntimeError("breaks at record 70")

        def rows(epoch):
            for number in range(100):
                if number == 70:
                    raise error
                yield {"x": X[number], "label": int(Y[number])}
        estimator = self.new(save_checkpoints_steps=1)
        data = belfry.Dataset.from_generator(rows, 100)
        self.raises(error, lambda: estimator.train(lambda: data.batch(32), max_steps=9), "rows")
        self.assertLessEqual(estimator.evaluate(lambda: HELD.batch(100)).global_step, 2)  # what was saved stays

    def test_bad_records_may_be_skipped(self):
        def some(record):
            return {"x": record["x"] + np.float32(1 / (record.number - 5))}
        skipping = lambda: DIGITS.map(some).repeat().batch(32).skip_bad_records(1)
        self.assertEqual(self.train(input_fn=skipping).global_step, 5)
        with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
            self.train(input_fn=lambda: DIGITS.map(some).repeat().batch(32))

    def test_wrong_results_of_functions(self):
        for words, call in {
                "model function <lambda>: expected it to return a belfry.EstimatorSpec in mode train, got NoneType":
                    lambda: self.train(lambda ctx: None),
                "loss in TRAIN must be a scalar": lambda: self.train(lambda ctx: belfry.EstimatorSpec()),
                "EstimatorSpec.loss: expected a value": lambda: self.train(lambda ctx: belfry.EstimatorSpec(loss=1.0)),
                "there is no feature \"z\"; features of the input: \"x\"":
                    lambda: self.train(lambda ctx: ctx.features["z"]),
                "input function <lambda>: expected a belfry.Dataset, got list":
                    lambda: self.train(input_fn=lambda: [1]),
                "expected a batch stage, got none; end it with batch or padded_batch": lambda: self.train(input_fn=lambda: DIGITS),
                "map: expected a dict of fields, got NoneType":
                    lambda: self.train(input_fn=lambda: DIGITS.map(lambda record: None).batch(32)),
                "l1/kernel|l2/kernel": lambda: self.train(self.another_each_time(),
                                                          [belfry.EvalSpec(lambda: HELD.batch(100))]),
                "an optimizer for all variables in TRAIN, got none":
                    lambda: self.train(lambda ctx: belfry.EstimatorSpec(loss=classify(ctx).loss)),
                "never end": lambda: self.train(max_steps=None)}.items():
            with self.subTest(words):
                self.refuses(words, call)
        self.refuses("expected 60 records, but it ended after 50", lambda: self.train(
            input_fn=lambda: belfry.Dataset.from_generator(
                lambda epoch: ({"x": X[i], "label": int(Y[i])} for i in range(50)), 60).batch(32)),
            belfry.DataLossError)
        with self.assertWarnsRegex(UserWarning, "expected 40 records in an epoch, got more"):
            self.train(input_fn=lambda: belfry.Dataset.from_generator(
                lambda epoch: ({"x": X[i], "label": int(Y[i])} for i in range(50)), 40).repeat().batch(20))
        self.refuses("out of range", lambda: self.train(
            input_fn=batches(belfry.Dataset.from_memory(X, Y + 5))), belfry.OutOfRangeError)
        self.refuses("is not finite", lambda: self.train(
            input_fn=batches(belfry.Dataset.from_memory(np.full_like(X, np.nan), Y))), belfry.AbortedError)

    @staticmethod
    def another_each_time():
        calls = []

        def model_fn(ctx):
            calls.append(1)
            return classify(ctx, name=f"l{len(calls)}")
        return model_fn


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
