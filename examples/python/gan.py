"""Generative adversarial network on handwritten digits, 8 × 8 pixels (Goodfellow et al. 2014): examples/gan in Python.

    noise [n, 16] -- dense 64 -- dense 64 -- sigmoid -- image --+
                                                                +-- dense 64 -- dense 1 -- real or not
    digits-train.csv -- pixels / 16 ----------------------------+

The loop alternates two steps of the discriminator and one of the generator. Every 300 steps, and at the end, it writes
a picture of samples: MODEL_DIR/samples-<step>.pgm.

usage: gan.py TRAIN.csv [STEPS] [--model_dir FOLDER] [flags of a run, such as --num_workers 4 --mode async]
"""
import sys

import numpy as np

import belfry
from belfry import layers, ops

PIXELS, SIDE, NOISE, WIDTH, SAMPLES, BATCH, PICTURE_EVERY = 64, 8, 16, 64, 16, 32, 300
adam = belfry.Adam(0.002, beta1=0.5)


def generate(like):
    """Images [n, PIXELS] from noise in the shape of `like`, [n, NOISE]."""
    h = ops.random_normal(like)
    h = ops.leaky_relu(layers.dense(h, WIDTH, "generator/first"), 0.2)
    h = ops.leaky_relu(layers.dense(h, WIDTH, "generator/second"), 0.2)
    return layers.dense(h, PIXELS, "generator/image", activation="sigmoid")


def judge(images):
    """Logits [n, 1] of images being real."""
    h = ops.leaky_relu(layers.dense(images, WIDTH, "discriminator/first"), 0.2)
    return layers.dense(h, 1, "discriminator/real")


def loss_of(logits, real):
    """The mean loss of logits whose target is `real`."""
    return ops.mean(ops.sigmoid_cross_entropy(logits, logits * 0.0 + real))


def rows(ctx):
    """Rows of NOISE columns, one for each image in the batch."""
    return ctx.feature[:, :NOISE]


def discriminator_fn(ctx):
    made = ops.stop_gradient(generate(rows(ctx)))
    real = loss_of(judge(ctx.feature), 0.9)  # instead of 1: prevents overconfidence
    return belfry.EstimatorSpec(loss=real + loss_of(judge(made), 0.0), optimizer=adam)


def generator_fn(ctx):
    loss = loss_of(judge(generate(rows(ctx))), 1.0)
    samples = generate(ops.expand(ops.constant(0.0), [SAMPLES, NOISE]))
    return belfry.EstimatorSpec(loss=loss, optimizer=adam, returns={"samples": (samples, "replicas")})


def model_fn(ctx):
    """For programs that read the checkpoints: predictions are samples."""
    return belfry.EstimatorSpec(predictions=generate(rows(ctx)))


def write_picture(path, pixels):
    """Writes SAMPLES images side by side, white on black, as a gray map for any viewer."""
    images = pixels[:SAMPLES * PIXELS].reshape(2, SAMPLES // 2, SIDE, SIDE)
    gray = (images.swapaxes(1, 2).reshape(2 * SIDE, -1) * 255 + 0.5).astype(int)
    np.savetxt(path, gray, "%d", header=f"P2 {gray.shape[1]} {gray.shape[0]} 255", comments="")


def main():
    config = belfry.RunConfig(num_gpus=2, save_checkpoints_steps=150)
    path, *rest = config.flags(sys.argv[1:])
    steps = int(rest[0]) if rest else 3000
    means = np.zeros(2)  # of both losses, decaying; checkpoints keep it

    def run(replicator):
        while replicator.step < steps:
            which = int(replicator.step % 3 == 2)
            result = replicator.run(("discriminator", "generator")[which])
            means[which] = result.loss if means[which] == 0 else 0.98 * means[which] + 0.02 * result.loss
            if which == 1 and (result.step % PICTURE_EVERY == 0 or result.step >= steps):
                print(f"step {result.step}: discriminator {means[0]:.3f}, generator {means[1]:.3f}", flush=True)
                write_picture(f"{estimator.model_dir}/samples-{result.step}.pgm", result.values["samples"])

    estimator = belfry.Estimator(model_fn, config=config)
    functions = {"discriminator": (discriminator_fn, "discriminator/*"), "generator": (generator_fn, "generator/*")}
    data = belfry.Dataset.from_csv(path, label_column="digit", class_count=10, scale=1 / 16)
    loop = belfry.Loop(functions, run, means)
    train = belfry.TrainSpec(lambda: data.shuffle(seed=1).repeat().batch(BATCH), loop=loop)
    result = belfry.train_and_evaluate(estimator, train)
    if result:
        print("digest", result.digest)


if __name__ == "__main__":
    main()
