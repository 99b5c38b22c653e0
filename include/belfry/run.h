/// Configuration of a run: settings, parameters, and the role of a process in its job.
///
/// Thread rule: structs are plain data, owned by the code that fills them in.
#ifndef BELFRY_RUN_H
#define BELFRY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Role of a process in a job. In a job of one process, that is MASTER.
typedef enum bel_role {
    BEL_ROLE_MASTER,    ///< decides, evaluates, saves; may train as worker 0 besides
    BEL_ROLE_WORKER,    ///< computes gradients
    BEL_ROLE_PS,        ///< parameter server: holds a shard of the parameters, and updates it
    BEL_ROLE_EVALUATOR, ///< evaluates checkpoints beside the training
    BEL_ROLE_COUNT
} bel_role;

/// --- Settings -----------------------------------------------------------------------------------

/// Transport between workers and shards of a cluster. AUTO: shared memory on one host, gRPC between
/// hosts.
typedef enum bel_lane_choice { BEL_LANE_AUTO, BEL_LANE_SHM, BEL_LANE_GRPC } bel_lane_choice;

/// How a tower runs the calls of its program; both give the same bits. SYNC: one call after
/// another. All threads share the tiles of one call, or of a few independent calls. ASYNC: each
/// call as soon as its inputs are ready. ASYNC is faster if a model has branches too small to
/// fill the threads, and needs more memory.
typedef enum bel_executor { BEL_EXECUTOR_SYNC, BEL_EXECUTOR_ASYNC } bel_executor;

/// Type in which a replica keeps activations from its forward pass to its backward pass. BF16: half
/// the memory, rounded to 8 bits of mantissa. Computation, parameters, gradients, losses,
/// statistics and evaluation remain F32.
typedef enum bel_precision { BEL_PRECISION_F32, BEL_PRECISION_BF16 } bel_precision;

/// Type in which sums of gradients and updates of parameters go between workers and shards. With
/// BF16 and INT8 each replica's gradient, each sum over replicas and each update of a parameter is
/// rounded. INT8 has one scale for 16 values. Parameters, slots, state variables and rows of tables
/// remain F32. Over gRPC a step has half of the bytes, or 0.27 of them. The bits are the same for
/// any assignment and any lane.
typedef enum bel_exchange_precision {
    BEL_EXCHANGE_F32,
    BEL_EXCHANGE_BF16,
    BEL_EXCHANGE_INT8
} bel_exchange_precision;

/// Library for the products of MatMul and Gemm and of their gradients. BELFRY: the same bits on
/// every processor. OPENBLAS: libopenblas.so.0, which must be installed, with one thread a call.
/// Its bits hold for any assignment, threads and shards, but only for one version of it and one
/// core type. A checkpoint records both, and all workers must share them. Convolutions, recurrent
/// layers and attention use Belfry's kernels in both cases.
typedef enum bel_products { BEL_PRODUCTS_BELFRY, BEL_PRODUCTS_OPENBLAS } bel_products;

/// Multiplication on GPUs: MatMul, Gemm, convolutions and their gradients. EXACT: Belfry's kernels,
/// in f32, with the processor's bits. The others: cuBLASLt and cuDNN, which must be installed, with
/// the same bits from run to run on one kind of GPU and one version of them. F32: in f32. TF32:
/// factors rounded to 10 bits of mantissa. BF16: factors rounded to 7 bits, as are the results of
/// convolutions and of their gradients. Sums, parameters, gradients and activations are f32 in all
/// of them.
typedef enum bel_gpu_math {
    BEL_GPU_MATH_EXACT,
    BEL_GPU_MATH_F32,
    BEL_GPU_MATH_TF32,
    BEL_GPU_MATH_BF16,
} bel_gpu_math;

/// Weights of replicas in an update, and in batch statistics that are kept.
typedef enum bel_average {
    BEL_AVERAGE_EXAMPLES, ///< weighted by examples: the gradient is the mean over all examples
    BEL_AVERAGE_REPLICAS, ///< equal weights: the gradient is the mean of the replicas' means
    BEL_AVERAGE_SUM,      ///< equal weights: the gradient is the sum of the replicas' means
} bel_average;

/// Scaling of learning rates with R, the number of replicas whose batches make a step (the linear
/// rule, Goyal et al. 2017, section 2.1).
typedef enum bel_rate_scaling {
    BEL_SCALE_NONE,   ///< rates are used as given
    BEL_SCALE_LINEAR, ///< R times the given rate; warm-up begins at the given rate
    BEL_SCALE_ALWAYS, ///< LINEAR also with AVERAGE_SUM, whose gradient is already R times the mean
} bel_rate_scaling;

/// When the reports of workers become an update.
typedef enum bel_aggregation {
    /// Averages the reports of replicas_to_aggregate workers that computed on the same version. All
    /// workers: the bits of the result do not depend on timing. Fewer: the others are backups. The
    /// first reports count, the same ones on all parameter servers, and later ones are dropped.
    /// More than there are workers: every worker computes several replicas a step, one after
    /// another.
    BEL_AGGREGATE_SYNC,
    /// Applies each report as it arrives (or replicas_to_aggregate of them together), whatever
    /// version it was computed on.
    BEL_AGGREGATE_ASYNC,
    /// Like ASYNC, but a worker waits while its used reports exceed the slowest worker's by more
    /// than max_staleness (Ho et al. 2013, stale synchronous parallel).
    BEL_AGGREGATE_BOUNDED,
} bel_aggregation;

/// Devices of towers. The choice does not change the bits: docs/determinism.md.
typedef enum bel_device_choice {
    /// With num_gpus: GPUs, if the machine has any; else shares of the cores.
    BEL_DEVICE_AUTO,
    BEL_DEVICE_CPU,  ///< Shares of the cores.
    BEL_DEVICE_CUDA, ///< GPUs; an error without any.
} bel_device_choice;

/// Settings of a run. bel_run_config_init sets the defaults in brackets (0, NULL or false if none
/// is given); then the caller changes them. bel_estimator_create copies the struct with its texts
/// and lists, and names a setting that is out of range.
typedef struct bel_run_config {
    size_t size; ///< sizeof(bel_run_config), by bel_run_config_init

    // Folder and program.

    /// Folder of checkpoints, events and report; created if missing. NULL: the folder that the
    /// launcher named (`--job_dir`, in BELFRY_MODEL_DIR). One of the two is required.
    const char *model_dir;
    uint64_t seed; ///< [1]
    void *user;    ///< for the program's functions: bel_estimator_config(estimator)->user [NULL]
    /// Text for model_dir/job.yaml; NULL: none. The process that trains (in a cluster the master)
    /// writes it when the folder is locked and its contents are compatible.
    const char *job_file;
    /// ONNX file to copy to model_dir/source-DIGEST.onnx when job_file is written; NULL: none.
    const char *model_file;
    bool allow_changes; ///< resume even if settings that determine the bits changed

    // Replicas.

    int num_workers; ///< workers in this process [1]
    /// Towers of each worker, each on a GPU; without GPUs they share the cores. 0: one tower, with
    /// `device` AUTO on the cores. [0]
    int num_gpus;
    const int *towers_of;       ///< towers of each worker, if they differ; NULL: num_gpus each
    int parameter_server_count; ///< shards in this process; 0: num_workers [1]
    /// Parameters of a shard, in bytes: a model without tables is on no more shards than have that
    /// many each, at least on one. Others would only add messages to each step. 0: no limit.
    /// [262144]
    int64_t min_shard_bytes;
    int num_threads;       ///< threads of a tower; 0: cores / towers of this machine [0]
    bel_executor executor; ///< [SYNC]
    bel_products products; ///< [BELFRY]
    bel_lane_choice lane;  ///< transport of a cluster [AUTO]
    bool elastic_rescale; ///< in a cluster: replicas and learning rate follow the number of workers
    /// For TF_CONFIG and launchers of ranks, which do not specify it. true: the chief, or rank 0,
    /// is also a worker, as in TensorFlow 1; false: it only coordinates, as in TensorFlow 2. [true]
    bool chief_trains;

    // GPUs.

    bel_device_choice device; ///< [AUTO]
    const char *gpus;         ///< "0,2": these GPUs, by the PCI bus; NULL: all visible ones
    bool virtual_devices;     ///< several towers may share a GPU [false]
    bel_gpu_math gpu_math;    ///< values other than EXACT need GPUs [EXACT]
    /// Storage and update of parameters, with the same bits. CPU: in the memory of the process.
    /// CUDA: on the towers' GPUs, or an error that gives the reason. AUTO: on the GPUs if possible.
    /// [AUTO]
    bel_device_choice update_device;

    // Memory.

    /// Maximal bytes of each GPU's memory for this process's programs, all towers on that GPU
    /// together; 0: all of it. Beyond it: RESOURCE_EXHAUSTED, as on a smaller GPU. INVALID_ARGUMENT
    /// if no tower is on a GPU. [0]
    int64_t memory_limit;
    bel_precision precision;   ///< [F32]
    int64_t activation_memory; ///< maximal bytes of a tower's values; recomputes some; 0: off [0]
    /// Maximal bytes of a table's rows on a shard; 0: no limit. A full table continues with its
    /// rows, and new keys keep their start values. The bits then depend on the number of shards.
    /// [0]
    int64_t table_memory;
    /// Folder, on the host of each shard, for the rows of tables that have no room in table_memory.
    /// That is then the memory of a table's rows and no limit: tables may be larger, with the bits
    /// of tables in memory. Needs table_memory. INVALID_ARGUMENT if the model has no tables.
    /// Evaluations and predictions read rows in place, from the files of a checkpoint. NULL or
    /// empty: none.
    const char *table_disk;
    /// bel_evaluate, bel_predict: maximal bytes of variables in a tower; 0: all are in memory. A
    /// larger model runs in stages, for every batch: while one stage computes, the values of the
    /// next are read from the checkpoint. [0]
    int64_t stage_memory;

    // Update.

    bel_aggregation mode;      ///< [SYNC]
    int replicas_to_aggregate; ///< workers; 0: all of them with SYNC, else 1 [0]
    int max_staleness;         ///< BOUNDED [0]
    int accumulate_steps;      ///< SYNC: batches that each tower computes for an update [1]
    bel_average average;       ///< weights of replicas' gradients [EXAMPLES]
    /// Sets bel_schedule.scale of every optimizer to R, the number of replicas whose batches make a
    /// step: bel_estimator_replicas, or with backups those that count. Only with SYNC: with ASYNC
    /// and BOUNDED an update has the batches of replicas_to_aggregate workers, however many workers
    /// there are. [NONE]
    bel_rate_scaling scale_learning_rate;
    /// At the end of the input, drops examples that do not fill a step of all replicas, and logs
    /// their number. false: the last step uses them. [false]
    bool drop_remainder;

    // Checkpoints.

    int64_t save_checkpoints_steps;       ///< 0: by time [0]
    double save_checkpoints_secs;         ///< 0: off; ignored when steps are set [600]
    int keep_checkpoint_max;              ///< 0: keep all [5]
    double keep_checkpoint_every_n_hours; ///< also keep one for each N hours; 0: off [0]

    // Evaluation and prediction.

    bool averages; ///< bel_evaluate, bel_predict: moving averages, if present [true]
    /// In a cluster, workers also run batches of the evaluations of saved versions. They use a
    /// separate thread during training, and hold the checkpoint's values in memory meanwhile. They
    /// call the evaluation's input and model functions. The results have the same bits. [false]
    bool evaluate_on_workers;
    /// bel_predict: predicts only part predict_part, from 0 on, of predict_parts consecutive parts
    /// of the input, each a run of batches; 0 parts: all of it. Several processes, on any hosts,
    /// can thus predict an input. Their concatenated rows equal those of one process. [0, 0]
    int predict_part, predict_parts;

    // Reports.

    int64_t save_summary_steps;   ///< events; 0: off [100]
    int64_t log_step_count_steps; ///< progress, at most once a second; 0: off [100]
    bool train_metrics;           ///< metrics of training steps as events, too [false]
    bool report;                  ///< write report.html [true]
    int metrics_port;            ///< HTTP port of the master's metrics; 0: none, -1: a free one [0]
    const char *metrics_address; ///< address of that port; NULL: the default [127.0.0.1]
    const char *trace;           ///< Chrome trace of all processes, written at the end; NULL: none

    // Checks.

    double stall_timeout; ///< seconds: the job fails after this time without a step [600]
    /// Workers record in model_dir/audit which records each step read, 16 bytes a record, for
    /// `belfry inspect --audit`. Only if all workers count in every update. [false]
    bool audit_input;
    /// Every N steps, hashes and compares the dense parameters of each worker, and of each GPU if
    /// several store them. A difference ends the job and names the worker or GPU. 0: only at the
    /// start and after a worker's replacement. Only if all workers count in every update. [0]
    int64_t check_replicas;

    // Slow links (docs/slow-links.md).

    /// Number of batches that each replica trains, with the optimizer, between two exchanges: H. A
    /// step is then one exchange: the mean of all replicas' values and optimizer slots. It reads H
    /// batches of each replica; docs/slow-links.md. Only with SYNC and all workers, for one step
    /// function without tables and collectives. From 1. [1]
    int local_steps;
    /// Only with SYNC and all workers, without local steps and an update on GPUs. [F32]
    bel_exchange_precision exchange_precision;

    // Rows of tables.

    /// A key gets a row in a table in the N-th step whose batches name it. Until then its rows are
    /// start values and their gradients are dropped. 0 and 1: in the first one. [1]
    int64_t table_admit_after;
    /// A row that the batches of this many steps did not name is removed, at the latest a quarter
    /// as many steps later; so is the count of a key that has no row yet. 0: never. [0]
    int64_t table_expire_after;
    /// L2 norm: a row whose values have less is removed after a quarter of table_expire_after steps
    /// that did not name it, at the latest as many steps later. 0: none. [0]
    double table_expire_below;
    /// Interval of full checkpoints. Those between have all dense variables, but only the rows of
    /// tables that changed since the last full checkpoint, which is kept with them. 1: all are
    /// full. [1]
    int64_t full_checkpoint_every;

    // Many workers (docs/protocol.md, Relays).

    /// The most workers that report to a shard. If there are more, workers' processes add the
    /// reports of groups of this size on the way; the bits stay. 0: 32, where that is possible.
    /// Only with SYNC and all workers, over gRPC, with parameter servers, for one step function
    /// without tables and collectives. From 2. [0]
    int64_t fan_in;
} bel_run_config;

/// Sets every field to its default. `size` is sizeof *config; nothing beyond it is
/// written.
BEL_API void bel_run_config_init(bel_run_config *config, size_t size);

/// Sets the field of a flag of `belfry train_and_evaluate` or `evaluate`: ("mode", "async"),
/// ("num_gpus", "4"). Supports all fields except lists (towers_of) and predict_part. Texts are
/// borrowed. INVALID_ARGUMENT: no such flag, or malformed; bel_estimator_create checks ranges.
/// FAILED_PRECONDITION: the field is beyond the struct's size.
BEL_API bel_status *bel_run_config_set(bel_run_config *config, const char *name,
                                       const char *text) BEL_MUST_USE;

/// Applies those flags from a program's arguments and removes them, so its user can choose towers,
/// workers and modes. Accepts `--NAME VALUE`, `--NAME=VALUE`, and `--NAME` or `--no_NAME` of a
/// switch, up to `--`. All other arguments stay, in their order; *count and arguments are those of
/// main. In a process of a job the cluster determines the numbers of workers and servers. Texts are
/// borrowed. INVALID_ARGUMENT: a flag without a value, or malformed.
BEL_API bel_status *bel_run_config_flags(bel_run_config *config, int *count,
                                         char **arguments) BEL_MUST_USE;

/// Rejects unknown flags, which would otherwise be silently ignored. Call it after the program has
/// removed all flags that it knows. INVALID_ARGUMENT: names the first argument that begins with
/// `--`, up to `--` itself, and the nearest flag of a run.
BEL_API bel_status *bel_refuse_flags(int count, char *const *arguments) BEL_MUST_USE;

/// Parameter of the model, an input or a hook: bel_estimator_param, bel_context_param.
typedef struct bel_param {
    const char *name;
    const char *value;
} bel_param;

#ifdef __cplusplus
}
#endif

#endif
