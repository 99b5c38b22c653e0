# Replaces itself by belfry: `gcloud ml-engine local train` starts this once for each process of a
# job.
import os
import sys

words = [word.replace("--job-dir", "--model_dir") for word in sys.argv[1:]]
os.execvp("belfry", ["belfry", "train_and_evaluate", *words])
