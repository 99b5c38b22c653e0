"""Distributed training with the Estimator API: Quantiphi's article as a program, on sounds of any length.

An input function (CSV decoding, buffered shuffle, feature extraction, repeat, padded batches), a model function that
all towers run, an estimator, and train_and_evaluate. The same file trains in one process, on towers (--num_gpus), and
as the processes of a cluster:

    belfry local train --package-path trainer/ --module-name trainer.main --job-dir JOB_DIR -- \\
        --train_files TRAIN.csv --eval_files EVAL.csv --train_batch_size 8 --eval_batch_size 8 --train_steps 20000

    belfry jobs submit training JOB_NAME --package-path trainer/ --module-name trainer.main --job-dir JOB_DIR \\
        --config config.yaml -- --train_files TRAIN.csv --eval_files EVAL.csv --train_batch_size 16 \\
        --eval_batch_size 16 --train_steps 100000 --data_dir DATA_DIR --num_gpus 4

Here trainer/main.py is this file. A CSV file has the columns path (of a WAV file with 16 bits, in --data_dir or beside
the CSV file) and label (0 to --class_count - 1).
"""
import argparse
import sys
import wave

import numpy as np

import belfry
from belfry import layers, metrics, ops


class FeatureExtractor:
    """Logarithms of the power in bands of frequencies, for each frame of 25 ms, every 10 ms."""
    bands = 32

    def __call__(self, path):
        with wave.open(path) as file:
            rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")
        size, hop = rate // 40, rate // 100
        frames = np.lib.stride_tricks.sliding_window_view(samples / 32768, size)[::hop]
        power = np.abs(np.fft.rfft(frames * np.hanning(size))) ** 2
        bands = [band.sum(axis=1) for band in np.array_split(power[:, 1:], self.bands, axis=1)]
        return np.log(np.stack(bands, axis=1) + 1e-6).astype(np.float32)


def make_input(files, batch_size, args, training):
    """A function that makes the input pipeline."""
    extract = FeatureExtractor()

    def features_of(record):
        x = extract(record.path("path", args.data_dir))
        return {"x": x, "length": np.int64(len(x))}

    def input_fn():
        data = belfry.Dataset.from_csv(files.split(","), columns={"path": str}, label_column="label",
                                       class_count=args.class_count)  # 1. CSV decoding
        if training:
            data = data.shuffle_sliding(1000, seed=1)  # 2. buffered shuffle
        data = data.map(features_of, drop=["path"])  # 3. feature extraction
        if training:
            data = data.repeat()  # 4. repeat
        return data.padded_batch(batch_size, {"x": [None, extract.bands]})  # 5. padded batching

    return input_fn


def model_fn(ctx):
    """Means over time through a deep network. Every tower runs it; their gradients are averaged."""
    x, length = ctx.features["x"], ctx.features["length"]
    total = ops.reduce_sum(ops.sequence_mask(x, length, axis=1), 1)
    hidden = total / ops.cast(length, np.float32)[:, None]
    for number, units in enumerate(ctx.params["hidden_units"]):
        hidden = layers.dense(hidden, units, f"dense_{number}", activation="relu")
    logits = layers.dense(hidden, ctx.params["class_count"], "logits")
    if ctx.mode == "predict":
        return belfry.EstimatorSpec(predictions=ops.softmax(logits))
    loss = ops.mean(ops.softmax_cross_entropy(logits, ctx.labels))
    accuracy = metrics.accuracy(ctx.labels, ops.arg_max(logits))
    return belfry.EstimatorSpec(loss=loss, optimizer=belfry.Adam(0.001), metrics={"accuracy": accuracy})


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_files", required=True)
    parser.add_argument("--eval_files", required=True)
    parser.add_argument("--train_batch_size", type=int, default=8)
    parser.add_argument("--eval_batch_size", type=int, default=8)
    parser.add_argument("--train_steps", type=int, default=20000)
    parser.add_argument("--data_dir")
    parser.add_argument("--class_count", type=int, default=10)
    args, flags = parser.parse_known_args(arguments)
    config = belfry.RunConfig(save_checkpoints_steps=1000)
    config.flags(flags)  # those of a run: --model_dir, --num_gpus, --num_workers, --mode …
    params = {"hidden_units": [64, 64], "class_count": args.class_count}
    classifier = belfry.Estimator(model_fn=model_fn, config=config, params=params)
    train_spec = belfry.TrainSpec(make_input(args.train_files, args.train_batch_size, args, True),
                                  max_steps=args.train_steps)
    eval_spec = belfry.EvalSpec(make_input(args.eval_files, args.eval_batch_size, args, False))
    result = belfry.train_and_evaluate(classifier, train_spec, eval_spec)
    if result is not None:  # the process that represents the job
        print(f"accuracy {result['accuracy']:.4f}\ndigest {result.digest}")


if __name__ == "__main__":
    main(sys.argv[1:])
