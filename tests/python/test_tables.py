"""Tables: Classifier, Regressor, and predictors of tables against `belfry predict`. tests/cli/python.sh calls it.

usage: test_tables.py FOLDER DIGITS TRAIN EVAL   (FOLDER: checkpoints `penguins` and `mixed`, exports `penguins.export`
and `mixed.export`, their rows NAME.csv and NAME.predicted.csv, the answers of `belfry predict`; DIGITS: the model_dir
and TRAIN, EVAL the files of the digits' dnn, whose predictions are DIGITS/predicted.csv)
"""
import copy
import csv
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import numpy as np

import belfry
from belfry.library import lib
from belfry.tables import Columns, Table

FOLDER, DIGITS, TRAIN, EVAL = sys.argv[1:5]


def read_columns(path):
    """Columns of a CSV file as lists of texts, with None for an empty cell."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {name: [row[place] or None for row in rows[1:]] for place, name in enumerate(rows[0])}


def read_digits(path):
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1].astype(int)


def package(name):
    """A package, or None if it is not installed."""
    try:
        return __import__(name, fromlist=["*"])
    except ImportError:
        return None


class Predictors(unittest.TestCase):
    def check(self, name, model, shown):
        """The answers of the command, bit for bit, for columns in another order."""
        cells, answers = read_columns(f"{FOLDER}/{name}.csv"), read_columns(f"{FOLDER}/{name}.predicted.csv")
        expected = np.array([[float(text) for text in answers[column]] for column in shown]).T
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the label among the columns is nothing to warn of
            given = {column: cells[column] for column in reversed(list(cells))}
            output = model(given).reshape(expected.shape)
        if output.dtype == np.float64:  # the command writes nine digits or some more
            self.assertLess(np.abs(output / expected - 1).max(), 1e-8)
        else:
            self.assertTrue(np.array_equal(output, expected.astype(output.dtype)), name)
        return cells, answers

    def test_checkpoints_and_exports_give_what_the_command_does(self):
        for path in ("penguins", "penguins.export"):
            model = belfry.Predictor(f"{FOLDER}/{path}")
            self.assertEqual(model.classes, ("Adelie", "Chinstrap", "Gentoo"))
            self.assertGreater(model.step, 0)
            cells, answers = self.check("penguins", model, [f"p_{name}" for name in model.classes])
            self.assertEqual(list(model.predict(cells)), answers["prediction"])
            self.assertEqual(list(model.run(cells)), ["predictions"])
            model.close()

    def test_dates_missing_numbers_and_new_texts(self):
        for path in ("mixed", "mixed.export"):
            model = belfry.Predictor(f"{FOLDER}/{path}")
            cells, _ = self.check("mixed", model, ["prediction"])
            self.assertEqual(model.classes, ())
            self.assertTrue(np.array_equal(model.predict(cells), model(cells).reshape(-1)))

    def test_frames(self):
        pandas = package("pandas")
        if pandas is None:
            self.skipTest("no pandas (Debian: python3-pandas)")
        for name in ("penguins", "mixed"):
            frame = pandas.read_csv(f"{FOLDER}/{name}.csv", parse_dates=["day"] if name == "mixed" else False)
            model = belfry.Predictor(f"{FOLDER}/{name}")
            expected = model(read_columns(f"{FOLDER}/{name}.csv"))
            self.assertTrue(np.array_equal(model(frame), expected), name)
            self.assertTrue(np.array_equal(model(frame.convert_dtypes()), expected), name)
            texts = frame.select_dtypes("object").columns
            self.assertTrue(np.array_equal(model(frame.astype({text: "category" for text in texts})), expected), name)

    def test_columns_that_are_missing_or_too_many(self):
        model = belfry.Predictor(f"{FOLDER}/penguins")
        cells = read_columns(f"{FOLDER}/penguins.csv")
        del cells["Sex"], cells["Island"]
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "none called Island, Sex"):
            model(cells)
        cells = read_columns(f"{FOLDER}/penguins.csv")
        cells["Color"] = cells["Sex"]
        for expected in (["left out, as the model was not trained with them: Color"], []):  # said once
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model(cells)
            self.assertEqual([str(warning.message) for warning in caught], expected)

    def test_bad_cells(self):
        model = belfry.Predictor(f"{FOLDER}/penguins")
        cells = read_columns(f"{FOLDER}/penguins.csv")
        bad = {
            "row 3, column \"Body Mass \\(g\\)\": expected a number, got \"heavy\"": lambda column: column[:3] + ["heavy"]
            + column[4:],
            "column Body Mass \\(g\\): expected .* rows, got 2": lambda column: column[:2],
            "without a zero byte": lambda column: ["\0"] + column[1:],
            "must be a string or a number, got list": lambda column: [[1.0]] + column[1:],
            "must be a string or a number, got bytes": lambda column: [b"1"] + column[1:],
            "a list or an array with a cell for each row, got 3.0; hint: .3.0.": lambda column: 3.0,
        }
        for words, change in bad.items():
            changed = dict(cells, **{"Body Mass (g)": change(cells["Body Mass (g)"])})
            with self.assertRaisesRegex(belfry.InvalidArgumentError, words):
                model(changed)
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "0 sample"):
            model({name: [] for name in cells})

    def test_a_checkpoint_of_numbers(self):
        x, _ = read_digits(EVAL)
        model = belfry.Predictor(DIGITS)
        with open(f"{DIGITS}/predicted.csv", encoding="utf-8") as file:
            expected = np.array([[float(cell) for cell in row] for row in csv.reader(file)], np.float32)
        self.assertTrue(np.array_equal(model(x), expected))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "a model of a table"):
            model.predict(x)

    def test_a_checkpoint_of_another_model(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(belfry.NotFoundError, "checkpoint"):
                belfry.Predictor(folder)


class Learners(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x, cls.y = read_digits(TRAIN)
        cls.x_new, cls.y_new = read_digits(EVAL)
        cls.model = belfry.Classifier(num_threads=1, num_epochs=20).fit(cls.x, cls.y)
        cls.expected = cls.model.predict_proba(cls.x_new)

    def test_it_learns(self):
        self.assertGreater(self.model.score(self.x_new, self.y_new), 0.96)
        self.assertEqual(self.expected.shape, (len(self.x_new), 10))
        self.assertEqual(list(self.model.classes_), list(range(10)))
        regressor = belfry.Regressor(num_epochs=10).fit(self.x[:, 1:], self.x[:, 0] + self.x[:, 20])
        self.assertGreater(regressor.score(self.x_new[:, 1:], self.x_new[:, 0] + self.x_new[:, 20]), 0.95)

    def test_same_bits_for_threads_orders_layouts_and_numbers_of_rows(self):
        order = np.random.RandomState(0).permutation(len(self.x))
        cases = {"threads": (2, self.x, self.y), "order": (1, self.x[order], self.y[order]),
                 "columns": (1, np.asfortranarray(self.x), self.y), "singles": (1, self.x.astype(np.float32), self.y),
                 "integers": (1, self.x.astype(np.int32), self.y), "lists": (1, self.x.tolist(), self.y.tolist())}
        for name, (threads, x, y) in cases.items():
            model = belfry.Classifier(num_threads=threads, num_epochs=20).fit(x, y)
            self.assertTrue(np.array_equal(model.predict_proba(self.x_new), self.expected), name)
        for count in (1, 33):
            self.assertTrue(np.array_equal(self.model.predict_proba(self.x_new[:count]), self.expected[:count]), count)
        other = belfry.Classifier(num_threads=1, num_epochs=20, random_state=2).fit(self.x, self.y)
        self.assertFalse(np.array_equal(other.predict_proba(self.x_new), self.expected))

    def test_copies_and_pickles(self):
        for name, model in (("pickle", pickle.loads(pickle.dumps(self.model))), ("copy", copy.deepcopy(self.model))):
            self.assertTrue(np.array_equal(model.predict_proba(self.x_new), self.expected), name)

    def test_export(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.export(f"{folder}/export")
            model = belfry.Predictor(f"{folder}/export")
            cells = {f"x{place}": self.x_new[:, place] for place in range(64)}
            self.assertEqual([int(name) for name in model.predict(cells)], list(self.model.predict(self.x_new)))

    def test_export_refuses_columns_that_need_the_hash(self):
        rng = np.random.default_rng(1)
        words = [" ".join(row) for row in rng.choice([f"word{word}" for word in range(200)], (300, 12))]
        cells, y = {"a, \"b\"": words, "c": rng.random(300)}, np.arange(300) % 2
        with tempfile.TemporaryDirectory() as folder:
            for model_dir, way in ((None, "fit with model_dir=…, as no"), (f"{folder}/kept", "kept")):
                model = belfry.Classifier(num_epochs=1, model_dir=model_dir).fit(cells, y)
                with self.assertRaisesRegex(belfry.UnimplementedError, f"columns a, \"b\" need Belfry's hash.*{way}"):
                    model.export(f"{folder}/export")
                self.assertFalse(os.path.exists(f"{folder}/export"))
            kept = belfry.Predictor(f"{folder}/kept")
            self.assertEqual([int(name) for name in kept.predict(cells)], list(model.predict(cells)))

    def test_masked_cells_are_missing(self):
        x, y = self.x[:300].copy(), self.y[:300]
        hidden = np.arange(x.size).reshape(x.shape) % 7 == 0
        missing = np.where(hidden, np.nan, x)
        expected = belfry.Classifier(num_epochs=2).fit(missing, y).predict_proba(missing)
        masked = np.ma.array(x, mask=hidden)
        self.assertTrue(np.array_equal(belfry.Classifier(num_epochs=2).fit(masked, y).predict_proba(masked), expected))
        frame, holes = ({str(place): array[:, place] for place in range(64)} for array in (masked, missing))
        model = belfry.Classifier(num_epochs=2).fit(holes, y)
        self.assertTrue(np.array_equal(model.predict_proba(frame), model.predict_proba(holes)))
        texts = np.ma.array(["u", "v"] * 150, mask=np.arange(300) < 2)
        model = belfry.Classifier(num_epochs=2).fit({"t": texts, "n": x[:, 20]}, y)
        given = np.array([None, None] + ["u", "v"] * 149, object)
        self.assertTrue(np.array_equal(model.predict_proba({"t": texts, "n": x[:, 20]}),
                                       model.predict_proba({"t": given, "n": x[:, 20]})))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "y contains NaN"):
            belfry.Classifier().fit(x, np.ma.array(y, mask=hidden[:, 0]))

    def test_booleans_as_numbers(self):
        b, n = self.x[:200, 20] > 4, self.x[:200, 21]
        with tempfile.TemporaryDirectory() as folder:
            model = belfry.Classifier(num_epochs=20, model_dir=folder).fit({"b": b, "n": n}, b)
            expected = model.predict_proba({"b": b, "n": n})
            for call in (model.predict_proba, belfry.Predictor(folder)):
                for numbers in (b.astype(int), b.astype(np.float32)):
                    self.assertTrue(np.array_equal(call({"b": numbers, "n": n}), expected))
                with self.assertRaisesRegex(belfry.InvalidArgumentError, "column b: expected booleans.*got 2"):
                    call({"b": b.astype(int) + 1, "n": n})
        with self.assertWarnsRegex(UserWarning, "by position"):
            self.assertTrue(np.array_equal(model.predict_proba(np.stack([b, n], 1)), expected))

    def test_weights(self):
        weights = np.where(self.y == 3, 0.0, 1.0)
        model = belfry.Classifier(num_epochs=5).fit(self.x, self.y, sample_weight=weights)
        self.assertNotIn(3, model.predict(self.x_new))
        self.assertIn(3, model.classes_)
        both = belfry.Classifier(num_epochs=5).fit(self.x, self.y, sample_weight=1 + (self.y == 3))
        same = belfry.Classifier(num_epochs=5).fit(self.x, self.y, sample_weight=np.full(len(self.y), 0.5))
        none = belfry.Classifier(num_epochs=5).fit(self.x, self.y)
        a, b, c = (m.predict_proba(self.x_new) for m in (both, same, none))
        self.assertTrue(np.array_equal(b, c))
        self.assertFalse(np.array_equal(a, c))

    def test_early_stopping(self):
        model = belfry.Classifier(num_threads=1, early_stopping=True, n_iter_no_change=4)
        order = np.random.RandomState(3).permutation(len(self.y))
        model.fit(self.x, self.y)
        scores = model.validation_scores_
        self.assertEqual((len(scores), len(model.loss_curve_)), (model.n_iter_, model.n_iter_))
        best = max(scores)
        self.assertEqual((model.best_validation_score_, len(scores) - 1 - scores.index(best) >= 4), (best, True))
        self.assertGreater(model.score(*read_digits(EVAL)), 0.93)
        last = model.fit(self.x[order], self.y[order]).predict_proba(self.x)
        with tempfile.TemporaryDirectory() as folder:  # the model is the best checkpoint
            again = belfry.Classifier(early_stopping=True, n_iter_no_change=4, model_dir=folder).fit(self.x, self.y)
            self.assertTrue(np.array_equal(again.predict_proba(self.x), last))
            with open(f"{folder}/best.json", encoding="utf-8") as file:
                best = json.load(file)["step"]
            self.assertLess(best, belfry.Predictor(folder).step)
        numbers = belfry.Regressor(early_stopping=True, num_epochs=3).fit(self.x[:, 1:], self.x[:, 20])
        self.assertGreater(numbers.best_validation_score_, 0.5)
        self.assertFalse(hasattr(numbers.set_params(early_stopping=False).fit(self.x[:, 1:], self.x[:, 20]),
                                 "validation_scores_"))

    def test_partial_fit(self):
        model = belfry.Classifier(num_threads=1)
        for step in range(20):
            model.partial_fit(self.x, self.y, classes=range(10) if step == 0 else None)
        self.assertGreater(model.score(self.x_new, self.y_new), 0.9)
        again = pickle.loads(pickle.dumps(model))
        for one in (model, again):
            one.partial_fit(self.x[:100], self.y[:100], sample_weight=np.arange(100))
        a, b = model.predict_proba(self.x_new), again.predict_proba(self.x_new)
        self.assertTrue(np.array_equal(a, b))
        onward = pickle.loads(pickle.dumps(self.model)).partial_fit(self.x[:200], self.y[:200])  # after a fit
        self.assertFalse(np.array_equal(onward.predict_proba(self.x_new), self.expected))
        self.assertTrue(np.array_equal(self.model.predict_proba(self.x_new), self.expected))
        with self.assertRaisesRegex(ValueError, "sample_weight: expected None"):
            onward.partial_fit(self.x[:9], self.y[:9], sample_weight=np.ones(9))
        with self.assertRaisesRegex(ValueError, "y: expected classes of .* got 11"):
            model.partial_fit(self.x[:2], [1, 11])
        with self.assertRaisesRegex(ValueError, "classes: expected all classes"):
            belfry.Classifier().partial_fit(self.x, self.y)

    def test_classes_keep_their_type_and_texts(self):
        for classes in ([False, True], ["no", "yes"], [-1.0, 1.0], ["NA", "None"], ["1", "1.0"], [7, 10**17]):
            y = np.array(classes)[(self.y < 5).astype(int)]
            model = belfry.Classifier(num_epochs=3).fit(self.x, y)
            found = model.predict(self.x_new)
            self.assertEqual((list(model.classes_), found.dtype), (sorted(classes), y.dtype))
            self.assertGreater(np.mean(found == np.array(classes)[(self.y_new < 5).astype(int)]), 0.8, classes)

    def test_dicts_of_columns(self):
        cells = read_columns(f"{FOLDER}/penguins.csv")
        y = cells.pop("Species")
        model = belfry.Classifier().fit(cells, y)
        self.assertGreater(model.score(cells, y), 0.98)
        self.assertEqual(list(model.feature_names_in_), list(cells))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "none called Sex"):
            model.predict({name: cells[name] for name in cells if name != "Sex"})

    def test_model_dir_is_kept_and_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            first = belfry.Classifier(model_dir=folder, num_epochs=2).fit(self.x, self.y)
            self.assertTrue(os.path.exists(f"{folder}/report.html"))
            again = belfry.Classifier(model_dir=folder, num_epochs=2).fit(self.x, self.y)
            self.assertTrue(np.array_equal(first.predict_proba(self.x_new), again.predict_proba(self.x_new)))
            with self.assertRaisesRegex(belfry.FailedPreconditionError, "settings"):
                belfry.Classifier(model_dir=folder, num_epochs=2).fit(self.x[1:], self.y[1:])
            step = belfry.Predictor(folder).step
            self.assertEqual(step, -(-2 * len(self.x) // 64))

    def test_temporary_folders_are_removed(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("tempfile.tempdir", folder):
            model = belfry.Classifier(num_epochs=1).fit(self.x, self.y)
            pickle.loads(pickle.dumps(model)).partial_fit(self.x, self.y).predict(self.x)
            with self.assertRaises(belfry.InvalidArgumentError):
                belfry.Classifier(optimizer="best").fit(self.x, self.y)
            self.assertEqual(os.listdir(folder), [])

    def test_fits_on_threads_and_after_a_fork(self):
        results = {}

        def fit(name):
            results[name] = belfry.Classifier(num_threads=1, num_epochs=20).fit(self.x, self.y)

        threads = [threading.Thread(target=fit, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        child = os.fork()  # while they train
        if child == 0:
            try:
                fit("child")
            except belfry.FailedPreconditionError as error:
                os._exit(0 if "was forked from process" in str(error) else 1)
            os._exit(2)
        for thread in threads:
            thread.join()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for name in range(3):
            self.assertTrue(np.array_equal(results[name].predict_proba(self.x_new), self.expected), name)

    def test_ctrl_c_saves_and_ends(self):
        program = ("import sys, numpy as np, belfry\n"
                   "x = np.random.RandomState(0).randn(1000, 8)\n"
                   "belfry.Classifier(num_epochs=10**7, verbose=True, model_dir=sys.argv[1]).fit(x, x[:, 0] > 0)\n")
        with tempfile.TemporaryDirectory() as folder:
            child = subprocess.Popen([sys.executable, "-c", program, folder], stderr=subprocess.PIPE, text=True)
            for line in child.stderr:
                if line.startswith("step "):
                    break
            child.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", child.communicate()[1])
            self.assertGreater(belfry.Predictor(folder).step, 0)

    def test_tokens_of_texts_are_refused(self):
        for option in ({"text": "a"}, {"text_most": 3}):
            with self.assertRaisesRegex(belfry.InvalidArgumentError, "columns.text.*: Python makes no tokens of texts"):
                Columns.infer(Table(1), **option)
        columns = Columns.parse("columns:\n  - {name: line, kind: tokens, most: 3}\n"
                                "  - {name: y, kind: label, classes: [a, b]}\n", "c.yaml")
        self.assertEqual((columns.tokenized, columns.hashed), (["line"], []))

    def test_bad_input(self):
        x, y, infinite = self.x[:50], self.y[:50], self.x[:50].copy()
        infinite[7, 3] = np.inf
        cases = {
            lambda: belfry.Classifier().fit(infinite, y): "row 7, column \"x3\": expected a finite number",
            lambda: belfry.Classifier().fit(x, y[:-1]): "y: expected 50 labels.*got 49",
            lambda: belfry.Classifier().fit(x, y + 0.5): "Unknown label type: continuous",
            lambda: belfry.Classifier().fit(x, np.zeros(50)): "at least 2 classes, got 1 class: 0",
            lambda: belfry.Classifier().fit(x, np.where(y == 1, np.nan, y)): "Input y contains NaN",
            lambda: belfry.Classifier().fit(x, [None] * 50): "Input y contains NaN",
            lambda: belfry.Regressor().fit(x, np.where(y == 1, np.inf, y)): "Input y contains infinity",
            lambda: belfry.Regressor().fit(x, ["a"] * 50): "y: expected numbers, got <U1",
            lambda: belfry.Classifier().fit(x[0], y): "Expected 2D array, got 1D",
            lambda: belfry.Classifier().fit(x + 1j, y): "Complex data not supported",
            lambda: belfry.Classifier().fit(x, y, sample_weight=-np.ones(50)): "sample_weight: expected finite numbers",
            lambda: belfry.Classifier().fit(x, y, sample_weight=[1, 2]): r"sample_weight: expected shape \(50,\)",
            lambda: belfry.Classifier(num_epochs=0).fit(x, y): "num_epochs: expected an integer from 1 on, got 0",
            lambda: belfry.Classifier(early_stopping=True, validation_fraction=1).fit(x, y): "validation_fraction: exp",
            lambda: belfry.Classifier(early_stopping=True, n_iter_no_change=0).fit(x, y): "n_iter_no_change: expected",
            lambda: belfry.Classifier(early_stopping=True, tol=-1).fit(x, y): "tol: expected a number from 0 on, got -1",
            lambda: belfry.Classifier(early_stopping=True).partial_fit(x, y, [0, 1]): "expected early_stopping=False",
            lambda: belfry.Classifier(random_state=-1).fit(x, y): "random_state",
            lambda: belfry.Classifier(optimizer="best").fit(x, y): "optimizer.*best",
            lambda: belfry.Classifier(hidden_units=[0]).fit(x, y): "hidden_units",
            lambda: belfry.Classifier().set_params(units=3): "Classifier: there is no units; expected one of dropout, early_stopping",
            lambda: belfry.Classifier().predict(x): "not fitted yet",
            lambda: self.model.predict(x[:, :5]): "X has 5 features.*expecting 64",
        }
        for call, words in cases.items():
            with self.assertRaisesRegex((ValueError, belfry.Error), words):
                call()
        self.assertTrue(np.array_equal(self.model.predict_proba(self.x_new), self.expected))


class WithPandas(unittest.TestCase):
    def test_frames_of_all_kinds(self):
        pandas = package("pandas")
        if pandas is None:
            self.skipTest("no pandas (Debian: python3-pandas)")
        frame = pandas.read_csv(f"{FOLDER}/mixed.csv", parse_dates=["day"])
        y = frame.pop("y")
        model = belfry.Regressor().fit(frame, y)
        self.assertGreater(model.score(frame, y), 0.9)
        plain = read_columns(f"{FOLDER}/mixed.csv")
        del plain["y"]
        self.assertGreater(belfry.Regressor().fit(plain, y).score(plain, y), 0.9)  # the cells as texts
        with self.assertWarnsRegex(UserWarning, "columns are taken by position"):
            model.predict(frame.to_numpy())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            given = frame.assign(b=pandas.Series([None] + list(frame["b"][1:]), dtype=object))
            objects = model.predict(given)
        self.assertTrue(np.array_equal(objects, model.predict(frame.assign(b=[np.nan] + list(frame["b"][1:])))))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "column city: .*got list"):
            model.predict(frame.assign(city=[["Oslo"]] + list(frame["city"][1:])))

    def test_objects_with_missing_values(self):
        pandas = package("pandas")
        if pandas is None:
            self.skipTest("no pandas (Debian: python3-pandas)")
        x, y = np.random.default_rng(1).random((200, 3)), np.arange(200) % 2
        x[::7, 1] = np.nan
        objects = np.where(np.isnan(x), pandas.NA, x.astype(object))
        model = belfry.Classifier(num_epochs=2).fit(x, y)
        self.assertTrue(np.array_equal(model.predict_proba(objects), model.predict_proba(x)))
        again = belfry.Classifier(num_epochs=2).fit(objects, y)
        self.assertTrue(np.array_equal(again.predict_proba(x), model.predict_proba(x)))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "y contains NaN"):
            model.fit(x, pandas.array([pandas.NA] + list(y[1:]), "Int64"))
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "from_memory: n: .*got pandas.NA; hint: fillna"):
            belfry.Dataset.from_memory({"n": pandas.Series([1, None], dtype="Int64")})
        belfry.Dataset.from_memory({"n": pandas.Series([1, 2], dtype="Int64")})


class WithScikitLearn(unittest.TestCase):
    def setUp(self):
        if package("sklearn") is None:
            self.skipTest("no scikit-learn (Debian: python3-sklearn)")

    def test_check_estimator(self):
        from sklearn.utils.estimator_checks import check_estimator
        for estimator in (belfry.Classifier(num_threads=1), belfry.Regressor(num_threads=1)):
            passed = 0
            for one, check in check_estimator(estimator, generate_only=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check(one)
                passed += 1
            print(f"check_estimator: {passed} checks of {type(estimator).__name__} passed")
            self.assertGreater(passed, 40)

    def test_pipelines_searches_and_clones(self):
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV, cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        x, y = read_digits(TRAIN)
        x, y = x[:400], y[:400]
        model = belfry.Classifier(num_threads=1, num_epochs=10)
        self.assertEqual(repr(clone(model)), "Classifier(num_epochs=10, num_threads=1)")
        scores = cross_val_score(make_pipeline(StandardScaler(), model), x, y, cv=3)
        self.assertGreater(scores.min(), 0.8)
        grid = {"hidden_units": [[16], [64]], "l2": [1e-4, 1e-2]}
        alone, both = (GridSearchCV(model, grid, cv=2, n_jobs=jobs).fit(x, y) for jobs in (1, 2))
        self.assertEqual(alone.best_params_, both.best_params_)
        self.assertTrue(np.array_equal(alone.cv_results_["mean_test_score"], both.cv_results_["mean_test_score"]))
        self.assertTrue(np.array_equal(alone.predict_proba(x), both.predict_proba(x)))


class WithTorch(unittest.TestCase):
    def test_tensors_in_and_out(self):
        torch = package("torch")
        if torch is None:
            self.skipTest("no PyTorch (Debian: python3-torch)")
        x, _ = read_digits(EVAL)
        model = belfry.Predictor(DIGITS)
        expected = model(x)
        given = torch.from_dlpack(x.astype(np.float32))
        self.assertTrue(np.array_equal(torch.from_dlpack(model(given)).numpy(), expected))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
