// Table of the settings of a run, one row each. It gives the fields' defaults and checks
// (run_flags.c), the flags of programs (belfry/run.h), and the command's flags with their help,
// manual and completion (tools/command/flags.c). To add a setting, add a field to bel_run_config, a
// row here, and the code that reads the field.
//
// ROW(group, name, form, verbs, default, accepts, unit, help, when): flag and field have one name.
// - form: TEXT, INT, WHOLE (int64_t), UNSIGNED (uint64_t), MIB (int64_t; the flag counts MiB, the
//   field bytes), SECS (double, also hours), REAL (double), SWITCH, CHOICE (an enumeration: the
//   index of the word);
// - group, verbs, when: as in bel_option; only tools/command/flags.c defines their words;
// - default: as it would be typed; accepts: an interval, or the words of a CHOICE.
#ifndef BELFRY_ESTIMATOR_RUN_SETTINGS_H
#define BELFRY_ESTIMATOR_RUN_SETTINGS_H

// A row keeps its line breaks:
// clang-format off
#define BEL_RUN_SETTINGS_RUN(ROW) \
    ROW(RUN, model_dir, TEXT, STORED, "", NULL, "FOLDER", \
        "Folder of checkpoints, event files and report; training resumes from what is there.", NULL) \
    ROW(RUN, seed, UNSIGNED, TRAINING, "1", "[0, inf)", NULL, \
        "Initial values, order of the data and dropout depend on it and on nothing else.", NULL) \
    ROW(RUN, num_workers, INT, RUNNING, "1", "[1, 1024]", "workers", \
        "Workers in this process.", NULL) \
    ROW(RUN, num_gpus, INT, RUNNING, "0", "[0, 256]", "towers", \
        "Towers of each worker, each on a GPU; without GPUs they share the processor's cores. 0: one " \
        "tower, with device auto on the processor.", NULL) \
    ROW(RUN, device, CHOICE, RUNNING, "auto", "auto|cpu|cuda", NULL, \
        "Towers' device. auto: with num_gpus or gpu_math GPUs if there are any, else the processor's " \
        "cores; cuda: GPUs, with num_gpus 0 one. With gpu_math exact the results are the same.", NULL) \
    ROW(RUN, gpus, TEXT, RUNNING, "", NULL, "LIST", \
        "GPUs for num_gpus, such as 0,2, in the order of the PCI bus; empty: all visible ones.", NULL) \
    ROW(RUN, virtual_devices, SWITCH, RUNNING, "false", NULL, NULL, \
        "Let several towers share a GPU if there are too few; else that is an error.", NULL) \
    ROW(RUN, gpu_math, CHOICE, RUNNING, "exact", "exact|f32|tf32|bf16", NULL, \
        "How GPUs multiply: exact, with the processor's bits, or by cuBLASLt and cuDNN in f32, tf32 or " \
        "bf16, which is faster, with the same bits from run to run on one kind of GPU.", NULL) \
    ROW(RUN, update_device, CHOICE, TRAINING, "auto", "auto|cpu|cuda", NULL, \
        "Where parameters are stored and updated. cpu: in the process's memory; cuda: on the towers' " \
        "GPUs; auto: on GPUs if possible. The results are the same.", NULL) \
    ROW(RUN, memory_limit, MIB, RUNNING, "0", "[0, 8388608]", "MiB", \
        "Memory of each GPU that this process may use for parameters and towers' values; 0: all of it.", NULL) \
    ROW(RUN, parameter_server_count, INT, TRAINING, "1", "[0, 1024]", "shards", \
        "Parameter-server shards in this process; 0: one per worker.", NULL) \
    ROW(RUN, min_shard_bytes, WHOLE, TRAINING, "262144", "[0, 1e15]", "bytes", \
        "Parameters of a shard: a model without tables is on no more shards than have that many each; the " \
        "others would only add messages to each step, and end. 0: on all.", NULL) \
    ROW(RUN, num_threads, INT, RUNNING | BEL_VERB_GENERATE, "0", "[0, 1024]", "threads", \
        "Threads of each tower; 0: the cores divided by the towers.", NULL) \
    ROW(RUN, executor, CHOICE, RUNNING, "sync", "sync|async", NULL, \
        "How a tower runs a model: operation by operation, or each as soon as its inputs are ready, " \
        "which helps branched models.", NULL) \
    ROW(RUN, precision, CHOICE, TRAINING, "f32", "f32|bf16", NULL, \
        "Type in which activations are kept for the backward pass; bf16 takes half the memory for them. " \
        "Everything is computed in f32.", NULL) \
    ROW(RUN, products, CHOICE, RUNNING, "belfry", "belfry|openblas", NULL, \
        "Code for matrix products: Belfry, with the same bits on every processor, or OpenBLAS, whose " \
        "bits depend on its version and the kernels that it chooses by the processor.", NULL) \
    ROW(RUN, activation_memory, MIB, TRAINING, "0", "[0, 8388608]", "MiB", \
        "Memory that a tower may take for the values of a step; what does not fit is computed again when " \
        "the backward pass needs it, with the same bits. 0: no limit.", NULL) \
    ROW(RUN, table_memory, MIB, TRAINING, "0", "[0, 8388608]", "MiB", \
        "Memory for a table's rows on a shard; 0: no limit. A full table continues with the rows that it " \
        "has: new keys keep their start values.", "model=linear|dnn|wide_deep") \
    ROW(RUN, table_disk, TEXT, TRAINING, "", NULL, "FOLDER", \
        "Folder on each shard's host for rows that have no room in --table_memory, which is then no limit: a " \
        "table may be larger, with the same results. Its files vanish when the process ends.", \
        "model=linear|dnn|wide_deep") \
    ROW(RUN, table_admit_after, WHOLE, TRAINING, "1", "[0, 8388608]", "steps", \
        "A key gets a row of a table in the N-th step that names it; before, it has start values and its " \
        "gradients are dropped.", "model=linear|dnn|wide_deep") \
    ROW(RUN, table_expire_after, WHOLE, TRAINING, "0", "[0, 8388608]", "steps", \
        "A row that no batch names for N steps is removed, at most N / 4 steps later. 0: never.", \
        "model=linear|dnn|wide_deep") \
    ROW(RUN, table_expire_below, REAL, TRAINING, "0", "[0, 1e9]", NULL, \
        "A row whose values have a smaller L2 norm is removed after N / 4 steps that do not name it, at most " \
        "N / 4 steps later, where N is that of --table_expire_after. 0: none.", "table_expire_after") \
    ROW(RUN, stage_memory, MIB, BEL_VERB_BENCH | BEL_VERB_EVALUATE | BEL_VERB_PREDICT, "0", "[0, 8388608]", "MiB", \
        "Memory for weights: a larger model runs in stages, and each stage's weights are read while the " \
        "one before computes; 0: all are in memory.", NULL) \
    ROW(RUN, stall_timeout, SECS, TRAINING, "600", "[0.001, 1e9]", "s", \
        "No training progress for this time is an error.", NULL) \
    ROW(RUN, lane, CHOICE, TRAINING, "auto", "auto|shm|grpc", NULL, \
        "How a cluster's processes exchange data; auto: shared memory on one host.", NULL) \
    ROW(RUN, mode, CHOICE, TRAINING, "sync", "sync|async|bounded", NULL, \
        "How workers' reports become updates: together, each on arrival, or so within --max_staleness.", NULL) \
    ROW(RUN, replicas_to_aggregate, INT, TRAINING, "0", "[0, 1024]", "workers", \
        "Workers' reports per update; 0: all with --mode sync, else 1. Fewer than the workers: the " \
        "others are backups; more: workers take turns.", NULL) \
    ROW(RUN, accumulate_steps, INT, TRAINING, "1", "[1, 1024]", "batches", \
        "Batches that each tower computes, one after another, for one update (gradient accumulation): a " \
        "step's batch is this many times as large, in the same memory.", NULL) \
    ROW(RUN, local_steps, INT, TRAINING, "1", "[1, 1e6]", "batches", \
        "Batches that each replica trains with the optimizer between two exchanges, for slow links; a step " \
        "is then one exchange, the mean of all replicas' parameters and optimizer slots.", NULL) \
    ROW(RUN, exchange_precision, CHOICE, TRAINING, "f32", "f32|bf16|int8", NULL, \
        "Type of gradients' sums and of updates between workers and shards, for slow links; bf16 and int8 " \
        "round them, for half and 0.27 of the bytes over gRPC. Parameters and slots remain f32.", NULL) \
    ROW(RUN, max_staleness, INT, TRAINING, "0", "[0, 1e9]", "steps", \
        "how far a worker may run ahead of the slowest.", "mode=bounded") \
    ROW(RUN, average, CHOICE, TRAINING, "examples", "examples|replicas|sum", NULL, \
        "How an update combines replicas' gradients: their mean, weighted by their examples or by 1 " \
        "each; or their sum.", NULL) \
    ROW(RUN, scale_learning_rate, CHOICE, TRAINING, "none", "none|linear|always", NULL, \
        "linear: learning rates are multiplied by the number of replicas whose batches make a step, and " \
        "--warmup_steps rise to that from the rate itself; always: also with --average sum.", NULL) \
    ROW(RUN, drop_remainder, SWITCH, TRAINING, "false", NULL, NULL, \
        "Leave out examples at the data's end that do not fill a step of all replicas, and log how many; " \
        "else the last step has them.", NULL) \
    ROW(RUN, fan_in, WHOLE, TRAINING, "0", "[0, 1024]", "workers", \
        "The most workers that report to a parameter server over the network; with more, workers' processes " \
        "add reports on the way; 0: 32, where that is possible.", NULL) \
    ROW(RUN, elastic_rescale, SWITCH, TRAINING, "false", NULL, NULL, \
        "In a cluster: when the number of workers changes, so do replicas and, by the same factor, the " \
        "learning rate.", NULL) \
    ROW(RUN, chief_trains, SWITCH, TRAINING, "true", NULL, NULL, \
        "For processes of another launcher: the chief of TF_CONFIG, or rank 0, is a worker, too; else it " \
        "only coordinates.", NULL)

#define BEL_RUN_SETTINGS_CHECKPOINTS(ROW) \
    ROW(CHECKPOINTS, save_checkpoints_steps, WHOLE, TRAINING, "0", "[0, 1e15]", "steps", \
        "Steps between saves; 0: by time.", NULL) \
    ROW(CHECKPOINTS, save_checkpoints_secs, SECS, TRAINING, "600", "[0, 1e9]", "s", \
        "Seconds between saves; 0: only at the end.", "!save_checkpoints_steps") \
    ROW(CHECKPOINTS, keep_checkpoint_max, INT, TRAINING, "5", "[0, 1e6]", "checkpoints", \
        "Maximum kept; 0: all.", NULL) \
    ROW(CHECKPOINTS, keep_checkpoint_every_n_hours, SECS, TRAINING, "0", "[0, 1e9]", "hours", \
        "Also keep one per this many hours; 0: none.", "keep_checkpoint_max!=0") \
    ROW(CHECKPOINTS, full_checkpoint_every, WHOLE, TRAINING, "1", "[1, 1e6]", "checkpoints", \
        "Of N checkpoints one has all rows of tables, the others only those that differ from it.", NULL) \
    ROW(CHECKPOINTS, allow_changes, SWITCH, TRAINING, "false", NULL, NULL, \
        "Resume although flags or data that determine the result have changed.", NULL)

#define BEL_RUN_SETTINGS_OUTPUT(ROW) \
    ROW(OUTPUT, save_summary_steps, WHOLE, TRAINING, "100", "[0, 1e15]", "steps", \
        "Steps between writes of event files; 0: never.", NULL) \
    ROW(OUTPUT, log_step_count_steps, WHOLE, TRAINING, "100", "[0, 1e15]", "steps", \
        "Steps between progress lines in the log, at most one a second; 0: never.", NULL) \
    ROW(OUTPUT, train_metrics, SWITCH, TRAINING, "false", NULL, NULL, \
        "Metrics of training steps, too, in event files every --save_summary_steps.", "save_summary_steps!=0") \
    ROW(OUTPUT, report, SWITCH, TRAINING, "true", NULL, NULL, \
        "Write report.html.", NULL) \
    ROW(OUTPUT, audit_input, SWITCH, TRAINING, "false", NULL, NULL, \
        "Note which records each step reads, 16 bytes a record, for inspect --audit.", NULL) \
    ROW(OUTPUT, check_replicas, WHOLE, TRAINING, "0", "[0, 1e15]", "steps", \
        "Steps between comparisons of the parameters of all workers and GPUs; 0: only at the start.", NULL) \
    ROW(OUTPUT, metrics_port, INT, TRAINING | PLACING, "0", "[-1, 65535]", NULL, \
        "Port on which the job's numbers can be read while it runs, by Prometheus at /metrics; 0: none, " \
        "-1: a free one, which the log names.", NULL) \
    ROW(OUTPUT, metrics_address, TEXT, TRAINING | PLACING, "127.0.0.1", NULL, "ADDRESS", \
        "Address of that port; 0.0.0.0: all of this host.", "metrics_port") \
    ROW(OUTPUT, trace, TEXT, TRAINING | PLACING, "", NULL, "FILE", \
        "Write a trace of all processes for chrome://tracing or ui.perfetto.dev, at the end.", NULL)

#define BEL_RUN_SETTINGS_EVALUATION(ROW) \
    ROW(EVALUATION, averages, SWITCH, READING, "true", NULL, NULL, \
        "Use moving averages of the parameters where the checkpoint has them.", NULL) \
    ROW(EVALUATION, evaluate_on_workers, SWITCH, ALONG, "false", NULL, NULL, \
        "In a cluster: workers run batches of the evaluations of checkpoints, too.", EVALUATED)

// clang-format on

#define BEL_EACH_RUN_SETTING(ROW)                                                                  \
    BEL_RUN_SETTINGS_RUN(ROW)                                                                      \
    BEL_RUN_SETTINGS_CHECKPOINTS(ROW)                                                              \
    BEL_RUN_SETTINGS_OUTPUT(ROW)                                                                   \
    BEL_RUN_SETTINGS_EVALUATION(ROW)

#endif
