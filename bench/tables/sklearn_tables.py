#!/usr/bin/python3
"""The peers on the tables of bench/tables/get: scikit-learn's usual pipelines, untuned, on the same split.

usage: sklearn_tables.py FOLDER [--table NAME] [--model linear|mlp|hgb] [--seed N]
With a table, a model and a seed it trains and evaluates one model. Otherwise it runs each combination of the open
ones in a separate process: three seeds of a randomized model, and the line has their median.
A line has the table, the model, training and test rows, used columns and all columns without the target, the
number of inputs made of them, the quality on the test rows (the table's measure first), and the seconds of one
process with its imports.

Numbers: the mean for a missing one, then scaled to mean 0 and deviation 1. Dates: year, month and day of the year as numbers.
Other texts: one-hot categories, a missing one a separate category. Categories of fewer than 5 rows, those beyond the
1000 most frequent and unknown ones share a place. A text with a different value in nearly each row is an identifier
and omitted. Rows without a target are dropped. linear: LogisticRegression or Ridge; mlp: MLPClassifier or
MLPRegressor (one hidden layer of 100, Adam, rows in batches of 200) until the training loss stops
falling; hgb: HistGradientBoostingClassifier or -Regressor, with ordinal categories, and with unchanged numbers and
missing values."""
import time

begun = time.perf_counter()
import argparse
import csv
import os
import subprocess
import sys
import warnings

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.csv")) as file:
    TABLES = {row["name"]: row for row in csv.DictReader(file)}
MODELS = "linear", "mlp", "hgb"
MEASURES = {"r2": "R2", "accuracy": "accuracy", "auc": "AUC"}  # names in a line
SEEDS = 3
STOPPING_ROWS = 10000  # from here on HistGradientBoosting holds out rows for early stopping
IDENTIFIER = 0.9  # least share of different values


def kind_of(values):
    """number, date, category or identifier: kind of a column by its training rows."""
    import pandas
    present = values.dropna()
    if pandas.api.types.is_numeric_dtype(values):
        return "number" if len(present) else "identifier"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if pandas.to_datetime(present, errors="coerce").notna().mean() > 0.95:
            return "date"
    return "identifier" if present.nunique() > IDENTIFIER * len(present) else "category"


def dates(frame):
    """Year, month and day of the year of each column."""
    import numpy
    import pandas
    parts = []
    for name in frame:
        date = pandas.to_datetime(frame[name], errors="coerce")
        parts += [date.dt.year, date.dt.month, date.dt.dayofyear]
    return numpy.column_stack(parts).astype(float)


def inputs_of(x, model):
    """The transformer of the columns, and the number of columns that it uses."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
    kinds = {}
    for column in x:
        kinds.setdefault(kind_of(x[column]), []).append(column)
    used = len(x.columns) - len(kinds.pop("identifier", []))
    scaled = {
        "number": lambda: make_pipeline(SimpleImputer(strategy="mean"), StandardScaler()),
        "date": lambda: make_pipeline(FunctionTransformer(dates), SimpleImputer(strategy="mean"), StandardScaler()),
        "category": lambda: make_pipeline(
            SimpleImputer(strategy="constant", fill_value="(missing)"),
            OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, max_categories=1000)),
    }
    as_they_are = {
        "number": lambda: "passthrough",
        "date": lambda: FunctionTransformer(dates),
        "category": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    }
    ways = as_they_are if model == "hgb" else scaled
    return ColumnTransformer([(kind, ways[kind](), columns) for kind, columns in kinds.items()]), used


def learner_of(model, y, numbers, seed):
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.preprocessing import StandardScaler
    if model == "linear":
        return Ridge() if numbers else LogisticRegression(max_iter=5000)
    if model == "hgb" and numbers:
        return HistGradientBoostingRegressor(random_state=seed)
    if model == "hgb":
        single = y.value_counts().min() == 1  # such a class cannot be divided for early stopping
        return HistGradientBoostingClassifier(random_state=seed, early_stopping=False if single else "auto")
    if not numbers:
        return MLPClassifier(max_iter=2000, random_state=seed)
    return TransformedTargetRegressor(MLPRegressor(max_iter=2000, random_state=seed), transformer=StandardScaler())


def play(folder, name, model, seed):
    import pandas
    from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score, roc_auc_score
    from sklearn.pipeline import make_pipeline

    parts, target = [], TABLES[name]["target"]
    for part in "train", "test":
        rows = pandas.read_csv(os.path.join(folder, name, part + ".csv")).dropna(subset=[target])
        parts.append((rows.drop(columns=target), rows[target]))
    (x, y), (x_test, y_test) = parts
    numbers = TABLES[name]["measure"] == "r2"
    inputs, used = inputs_of(x, model)
    whole = make_pipeline(inputs, learner_of(model, y, numbers, seed)).fit(x, y)
    if numbers:
        told = whole.predict(x_test)
        quality = f"R2 {r2_score(y_test, told):.4f}, RMSE {mean_squared_error(y_test, told) ** 0.5:.4f}"
    else:
        shares, classes = whole.predict_proba(x_test), whole.classes_
        quality = f"accuracy {accuracy_score(y_test, classes[shares.argmax(1)]):.4f}, "
        quality += f"log loss {log_loss(y_test, shares, labels=classes):.4f}"
        if len(classes) == 2:
            quality = f"AUC {roc_auc_score(y_test == classes[1], shares[:, 1]):.4f}, {quality}"
    width = whole[0].transform(x_test.head(1)).shape[1]
    return (f"{name} {model}: {len(y)} + {len(y_test)} rows, {used} of {len(x.columns)} columns, {width} inputs, "
            f"{quality}, ")


def has_chance(model, line):
    rows = int(line.split(": ")[1].split()[0])
    return model == "mlp" or model == "hgb" and rows > STOPPING_ROWS


def quality_of(line, name):
    return float(line.split(f", {MEASURES[TABLES[name]['measure']]} ")[1].split(",")[0])


def median_of(folder, name, model, seeds):
    """The line of the seed whose quality is the median."""
    lines = []
    for seed in seeds:
        begun = time.perf_counter()
        command = [sys.executable, __file__, folder, "--table", name, "--model", model, "--seed", str(seed)]
        line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        lines.append(f"{line.rpartition(', ')[0]}, {time.perf_counter() - begun:.2f} s")
        if not has_chance(model, line):
            break
    return sorted(lines, key=lambda line: quality_of(line, name))[(len(lines) - 1) // 2]


parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--table", choices=TABLES)
parser.add_argument("--model", choices=MODELS)
parser.add_argument("--seed", type=int)
options = parser.parse_args()
if options.table and options.model and options.seed is not None:
    print(play(options.folder, options.table, options.model, options.seed), end="")
    print(f"{time.perf_counter() - begun:.2f} s")
    sys.exit()
for table in [options.table] if options.table else TABLES:
    for kind in [options.model] if options.model else MODELS:
        drawn = range(1, SEEDS + 1) if options.seed is None else [options.seed]
        print(median_of(options.folder, table, kind, drawn), flush=True)
