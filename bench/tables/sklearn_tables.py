#!/usr/bin/python3
"""The peer on the tables of bench/tables/get: scikit-learn's usual pipeline, tuned on nothing, on the same split.

usage: sklearn_tables.py FOLDER [--table NAME] [--model linear|mlp|stopped] [--seed N]
With a table and a model it trains and judges one; otherwise each of those left open, in a process of its own.
A line says: the table, the model, rows to train and to test, columns used of those that there are without the
target, the inputs that became of them, the quality on the rows to test and the seconds of all, imports included.

Numbers: mean for a missing one, then to mean 0 and deviation 1. Dates: year, month and day of the year as numbers.
Other texts: categories, a missing one a category of its own, one-hot; those of fewer than 5 rows, those beyond the
1000 commonest and unknown ones share a place. A text of which nearly each row has another value is an identifier
and left out. Rows without a target are dropped. linear: LogisticRegression or Ridge; mlp: MLPClassifier or
MLPRegressor (one hidden layer of 100, Adam, rows in batches of 200) until the loss on the rows to train stands
still; stopped: the same with early_stopping, by a tenth of the rows to train."""
import time

begun = time.perf_counter()
import argparse
import os
import subprocess
import sys
import warnings

TARGETS = {"movies": "IMDB Rating", "cars": "Miles_per_Gallon", "birdstrikes": "Phase of flight", "zipcodes": "state",
           "weather": "weather", "penguins": "Species", "credit": "Status", "ames": "Sale_Price",
           "breast_cancer": "target", "wine": "target", "diabetes": "target"}
MODELS = "linear", "mlp", "stopped"
NUMBERS = "movies", "cars", "ames", "diabetes"  # whose target is one
IDENTIFIER = 0.9  # share of different values from which a text is one


def kind_of(values):
    """number, date, category or identifier: what the rows to train say of a column."""
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


def play(folder, name, model, seed):
    import pandas
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score, roc_auc_score
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    parts = []
    for part in "train", "test":
        rows = pandas.read_csv(os.path.join(folder, name, part + ".csv")).dropna(subset=[TARGETS[name]])
        parts.append((rows.drop(columns=TARGETS[name]), rows[TARGETS[name]]))
    (x, y), (x_test, y_test) = parts
    kinds = {}
    for column in x:
        kinds.setdefault(kind_of(x[column]), []).append(column)
    used = len(x.columns) - len(kinds.pop("identifier", []))
    ways = {
        "number": lambda: make_pipeline(SimpleImputer(strategy="mean"), StandardScaler()),
        "date": lambda: make_pipeline(FunctionTransformer(dates), SimpleImputer(strategy="mean"), StandardScaler()),
        "category": lambda: make_pipeline(
            SimpleImputer(strategy="constant", fill_value="(missing)"),
            OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, max_categories=1000)),
    }
    inputs = ColumnTransformer([(kind, ways[kind](), columns) for kind, columns in kinds.items()])
    if name in NUMBERS:
        net = MLPRegressor(max_iter=2000, random_state=seed, early_stopping=model == "stopped")
        last = Ridge() if model == "linear" else TransformedTargetRegressor(net, transformer=StandardScaler())
    elif model == "linear":
        last = LogisticRegression(max_iter=5000)
    else:
        last = MLPClassifier(max_iter=2000, random_state=seed, early_stopping=model == "stopped")
    whole = make_pipeline(inputs, last).fit(x, y)
    if name in NUMBERS:
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


parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--table", choices=TARGETS)
parser.add_argument("--model", choices=MODELS)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
if options.table and options.model:
    print(play(options.folder, options.table, options.model, options.seed), end="")
    print(f"{time.perf_counter() - begun:.2f} s")
    sys.exit()
for table in [options.table] if options.table else TARGETS:
    for kind in [options.model] if options.model else MODELS:
        begun = time.perf_counter()
        command = [sys.executable, __file__, options.folder, "--table", table, "--model", kind, "--seed",
                   str(options.seed)]
        line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(f"{line.rpartition(', ')[0]}, {time.perf_counter() - begun:.2f} s", flush=True)
