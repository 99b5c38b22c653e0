"""A training of the digits for tests/cli/python_jobs.sh: the model `dnn` of the command, or that of examples/my_model.

usage: train_digits.py MODEL TRAIN.csv EVAL.csv STEPS [flags of a run]
MODEL: dnn, my_model, or a way to fail: raises, raises_in_worker, returns_nothing, other_each_time
"""
import os
import sys

import belfry
from belfry import layers, metrics, ops


def dnn(ctx):
    return layers.dense(layers.dense(ctx.feature, 32, "dense_0", activation="relu"), 10, "logits")


def my_model(ctx):
    h = layers.dense(ctx.feature, 32, "entry", activation="relu")
    with ops.scope("block"):
        h = ops.relu(h + layers.dense(layers.dense(h, 32, "a", activation="relu"), 32, "b"))
    return layers.dense(h, 10, "logits")


def other_each_time(ctx):
    return layers.dense(ctx.feature, 10, f"process_{os.getpid()}")


def model_fn(ctx):
    if name == "raises":
        raise LookupError("the model has no data")
    if name == "returns_nothing":
        return None
    logits = {"my_model": my_model, "other_each_time": other_each_time}.get(name, dnn)(ctx)
    predictions = ops.softmax(logits)
    if ctx.labels is None:
        return belfry.EstimatorSpec(predictions=predictions)
    return belfry.EstimatorSpec(predictions=predictions, loss=ops.mean(ops.softmax_cross_entropy(logits, ctx.labels)),
                                optimizer=belfry.Adam(0.01),
                                metrics={"accuracy": metrics.accuracy(ctx.labels, ops.arg_max(logits))})


class Fail(belfry.Hook):
    def worker_after_step(self, context, report):
        if report.step == 10 and context.estimator.rank == 1:
            raise LookupError("worker 1 has no more data")


def data(path):
    return belfry.Dataset.from_csv(path, label_column="digit", class_count=10, scale=1 / 16)


config = belfry.RunConfig(min_shard_bytes=0, save_checkpoints_steps=20, report=False)
name, train_path, eval_path, steps = config.flags(sys.argv[1:])
estimator = belfry.Estimator(model_fn, config=config)
train = belfry.TrainSpec(lambda: data(train_path).shuffle(seed=1).repeat().batch(32), max_steps=int(steps),
                         hooks=[Fail()] if name == "raises_in_worker" else [])
result = belfry.train_and_evaluate(estimator, train, belfry.EvalSpec(lambda: data(eval_path).batch(100)))
if result is not None:
    print(f"accuracy {result['accuracy']:.6f}\ndigest {result.digest}")
