"""The Python package: its table of the C interface, predictors, errors. tests/cli/python.sh calls it.

usage: test_belfry.py EXPORT ROWS   (an export of the digits' dnn, and a CSV file of its rows with `belfry predict`'s
probabilities beside: p0 … p9)
"""
import ctypes
import csv
import re
import sys
import threading
import unittest

import numpy as np

import belfry
from belfry.library import lib

EXPORT, ROWS = sys.argv[1], sys.argv[2]


def read_rows():
    with open(ROWS, encoding="utf-8") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    return np.array([row[:64] for row in rows], np.float32), np.array([row[64:] for row in rows], np.float32)


class Interface(unittest.TestCase):
    def test_every_function_and_callback_has_a_type(self):
        for name in list(lib._functions) + list(lib._callbacks):
            self.assertIsNotNone(getattr(lib, name), name)
        self.assertGreater(len(lib._functions), 300)

    def test_structs_have_the_layout_of_the_compiler(self):
        checked, struct = 0, None
        with open(belfry.library.__file__.replace("library.py", "interface.txt"), encoding="utf-8") as file:
            for line in file:
                whole = re.match(r"struct (\w+): (\d+) bytes", line)
                field = re.match(r"    (\w+) at (\d+), (\d+) bytes", line)
                if whole:
                    struct = getattr(lib, whole[1])
                    self.assertEqual(ctypes.sizeof(struct), int(whole[2]), whole[1])
                elif field:
                    found = getattr(struct, field[1])
                    self.assertEqual((found.offset, found.size), (int(field[2]), int(field[3])), line)
                    checked += 1
        self.assertGreater(checked, 300)

    def test_a_name_that_is_not_there(self):
        with self.assertRaisesRegex(AttributeError, "bel_nothing"):
            lib.bel_nothing

    def test_codes_have_exceptions(self):
        codes = {name[4:]: value for name, value in vars(lib).items() if name in CODES}
        self.assertEqual(len(codes), 16)
        for name, value in codes.items():
            words = "".join(word.capitalize() for word in name.split("_"))
            self.assertEqual(belfry.errors.by_code[value].__name__, words + "Error")

    def test_the_version_is_the_librarys(self):
        self.assertEqual(belfry.__version__, lib.bel_version().decode())


CODES = ("BEL_CANCELLED BEL_UNKNOWN BEL_INVALID_ARGUMENT BEL_DEADLINE_EXCEEDED BEL_NOT_FOUND BEL_ALREADY_EXISTS "
         "BEL_PERMISSION_DENIED BEL_RESOURCE_EXHAUSTED BEL_FAILED_PRECONDITION BEL_ABORTED BEL_OUT_OF_RANGE "
         "BEL_UNIMPLEMENTED BEL_INTERNAL BEL_UNAVAILABLE BEL_DATA_LOSS BEL_UNAUTHENTICATED").split()


class Predictor(unittest.TestCase):
    def setUp(self):
        self.x, self.expected = read_rows()
        self.model = belfry.Predictor(EXPORT)
        self.addCleanup(self.model.close)

    def test_ports(self):
        self.assertEqual([tuple(port) for port in self.model.inputs], [("x", np.float32, (None, 64))])
        self.assertEqual([tuple(port) for port in self.model.outputs], [("predictions", np.float32, (None, 10))])
        self.assertEqual(self.model.step, 20)

    def test_it_predicts_what_the_command_does(self):
        y = self.model(self.x)
        self.assertEqual((y.shape, y.dtype), ((len(self.x), 10), np.float32))
        self.assertTrue(np.array_equal(y, self.expected))
        self.assertGreater(np.abs(self.expected[0] - self.expected[1]).max(), 0.01)

    def test_layouts_and_types_give_the_same_bits(self):
        y = self.model(self.x)
        for name, x in {"columns": np.asfortranarray(self.x), "doubles": self.x.astype(np.float64),
                        "lists": self.x.tolist(), "every other": np.repeat(self.x, 2, axis=0)[::2],
                        "swapped bytes": self.x.astype(">f4")}.items():
            self.assertTrue(np.array_equal(self.model(x), y), name)

    def test_outputs_belong_to_the_caller(self):
        first, again = self.model(self.x[:1]), self.model(self.x[:1])
        second = self.model(self.x[1:2])
        self.assertTrue(np.array_equal(first, again))
        self.assertFalse(np.array_equal(first, second))

    def test_a_bound_array_is_read_again_and_other_sizes_are_bound(self):
        x = self.x[:2].copy()
        one = self.model(x)
        x[:] = self.x[2:4]
        other = self.model(x)
        self.assertFalse(np.array_equal(one, other))
        self.assertTrue(np.array_equal(other, self.model(self.x[2:4].copy())))
        self.assertEqual(self.model(self.x[:5]).shape, (5, 10))
        self.assertTrue(np.array_equal(one, self.model(self.x[:2])))

    def test_by_name(self):
        y = self.model.run({"x": self.x})
        self.assertEqual(list(y), ["predictions"])
        self.assertTrue(np.array_equal(y["predictions"], self.model(self.x)))

    def test_threads_with_one_predictor_and_with_several(self):
        results, expected = {}, {count: self.model(self.x[:count]) for count in (1, 7, 200)}

        def predict(number):
            own = belfry.Predictor(EXPORT) if number % 2 == 0 else self.model
            results[number] = [np.array_equal(own(self.x[:count]), y) for _ in range(50)
                               for count, y in expected.items()]

        threads = [threading.Thread(target=predict, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            self.assertTrue(all(results[number]), number)

    def test_bad_input(self):
        cases = {
            lambda: self.model(self.x[:, :3]): (belfry.InvalidArgumentError, r"\[\?, 64\].*\[\d+, 3\]"),
            lambda: self.model(): (belfry.InvalidArgumentError, r"1 input \(x\), got 0"),
            lambda: self.model(self.x, self.x): (ValueError, r"1 input \(x\), got 2"),
            lambda: self.model.run({"y": self.x}): (belfry.InvalidArgumentError, r"1 input \(x\), got y"),
            lambda: self.model([["a"] * 64]): (belfry.InvalidArgumentError, "input x: expected numbers.*hint: pass a table"),
            lambda: self.model(self.x + 1j): (belfry.InvalidArgumentError, "input x: expected numbers.*complex"),
            lambda: self.model("text"): (belfry.InvalidArgumentError, "x: expected a numpy array.*got str"),
            lambda: self.model(self.x[:0]): (belfry.InvalidArgumentError, "at least one example"),
            lambda: belfry.Predictor("nowhere"): (belfry.NotFoundError, "nowhere"),
            lambda: belfry.Predictor(__file__): (belfry.DataLossError, "test_belfry.py"),
            lambda: belfry.Predictor(EXPORT, threads=-1): (belfry.InvalidArgumentError, "threads"),
        }
        for call, (kind, words) in cases.items():
            with self.assertRaisesRegex(kind, words):
                call()
        self.assertEqual(self.model(self.x).shape, (len(self.x), 10))  # it works after errors

    def test_use_after_close(self):
        self.model.close()
        self.model.close()
        with self.assertRaisesRegex(belfry.InvalidArgumentError, "closed"):
            self.model(self.x)

    def test_an_error_says_where_it_was_made(self):
        with self.assertRaises(belfry.NotFoundError) as caught:
            belfry.Predictor("nowhere")
        self.assertEqual(caught.exception.code, lib.BEL_NOT_FOUND)
        self.assertRegex(caught.exception.trace, r"\.c:\d+")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
