/// How a run is set up: settings, parameters, and what a process is told of the job it belongs to.
///
/// Thread rule: structs are plain data of whoever fills them in.
#ifndef BELFRY_RUN_H
#define BELFRY_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a process does in a job. A job of one process is its own MASTER.
typedef enum bel_role {
    BEL_ROLE_MASTER,    ///< decides, evaluates, saves; may train as worker 0 besides
    BEL_ROLE_WORKER,    ///< computes gradients
    BEL_ROLE_PS,        ///< parameter server: holds a shard of the parameters, and updates it
    BEL_ROLE_EVALUATOR, ///< evaluates checkpoints beside the training
    BEL_ROLE_COUNT
} bel_role;

/// --- Settings -----------------------------------------------------------------------------------

/// How workers and shards of a cluster exchange. AUTO: through shared memory on one host, over gRPC
/// between hosts.
typedef enum bel_lane_choice { BEL_LANE_AUTO, BEL_LANE_SHM, BEL_LANE_GRPC } bel_lane_choice;

/// How a tower runs the calls of its program, with the same bits. SYNC: one after another, the
/// tiles of each, or of a few that do not depend on each other, on all threads. ASYNC: each as soon
/// as what it needs is there; faster where a model has branches of which none fills the threads,
/// and takes more memory.
typedef enum bel_executor { BEL_EXECUTOR_SYNC, BEL_EXECUTOR_ASYNC } bel_executor;

/// In what type a replica keeps activations from its forward pass to its backward pass. BF16: in
/// half the memory, rounded to 8 bits of mantissa; whatever is computed, and parameters, gradients,
/// losses and statistics are F32 all the same, and so is evaluation.
typedef enum bel_precision { BEL_PRECISION_F32, BEL_PRECISION_BF16 } bel_precision;

/// Who computes the products of MatMul and Gemm and of their gradients. BELFRY: the same bits on
/// every processor. OPENBLAS: libopenblas.so.0, which must be there, one thread a call; the bits
/// hold for any assignment, threads and shards, but for one version of it and one core type, which
/// a checkpoint records and all workers must share. Convolutions, recurrent layers and attention
/// are Belfry's own with both.
typedef enum bel_products { BEL_PRODUCTS_BELFRY, BEL_PRODUCTS_OPENBLAS } bel_products;

/// How towers on GPUs multiply: MatMul, Gemm, convolutions and their gradients. EXACT: by Belfry's
/// own kernels, in f32, with the processor's bits. The others: by cuBLASLt and cuDNN, which must be
/// there, with the same bits from run to run on one kind of GPU and one version of them. F32: in
/// f32; TF32: factors rounded to 10 bits of mantissa; BF16: to 7, and so are the results of
/// convolutions and of their gradients. Sums are f32 with all of them, and so is what is kept:
/// parameters, gradients, activations.
typedef enum bel_gpu_math {
    BEL_GPU_MATH_EXACT,
    BEL_GPU_MATH_F32,
    BEL_GPU_MATH_TF32,
    BEL_GPU_MATH_BF16,
} bel_gpu_math;

/// How replicas count in an update, and in batch statistics that are kept.
typedef enum bel_average {
    BEL_AVERAGE_EXAMPLES, ///< each by its examples: the gradient is the mean over all examples
    BEL_AVERAGE_REPLICAS, ///< each once: the gradient is the mean of the replicas' means
    BEL_AVERAGE_SUM,      ///< each once: the gradient is the sum of the replicas' means
} bel_average;

/// Whether learning rates follow the number of replicas whose batches make a step (the linear rule,
/// Goyal et al. 2017, section 2.1).
typedef enum bel_rate_scaling {
    BEL_SCALE_NONE,   ///< rates are as they are given
    BEL_SCALE_LINEAR, ///< R times that; warm-up begins at the rate as it is given
    BEL_SCALE_ALWAYS, ///< LINEAR also with AVERAGE_SUM, whose gradient is R times the mean already
} bel_rate_scaling;

/// When the reports of workers become an update.
typedef enum bel_aggregation {
    /// Those of replicas_to_aggregate workers that computed on the same version, averaged. All
    /// workers: the bits of the result do not depend on timing. Fewer: the others are backups; the
    /// first reports count, the same ones on all parameter servers, and later ones are dropped.
    /// More than there are: every worker plays several replicas a step, one after another.
    BEL_AGGREGATE_SYNC,
    /// Each report as it comes, on whatever version it was computed (or replicas_to_aggregate of
    /// them together).
    BEL_AGGREGATE_ASYNC,
    /// The same, but a worker waits while more of its reports were used than of the slowest
    /// worker's and max_staleness beyond (Ho et al. 2013, stale synchronous parallel).
    BEL_AGGREGATE_BOUNDED,
} bel_aggregation;

/// What towers run on. Which it is does not enter the bits: docs/determinism.md.
typedef enum bel_device_choice {
    /// With gpu_count: cards, where the machine has any; else shares of the cores.
    BEL_DEVICE_AUTO,
    BEL_DEVICE_CPU,  ///< Shares of the cores.
    BEL_DEVICE_CUDA, ///< Cards; an error where there are none.
} bel_device_choice;

/// How to run. Set by bel_run_config_init to the defaults in brackets (0, NULL or false where none
/// is given), then changed. bel_estimator_create copies it with its texts and lists, and says which
/// setting is out of range.
typedef struct bel_run_config {
    /// Checkpoints, events, report; created if missing. NULL: the folder that whoever started the
    /// program has named (`--job_dir`, in BELFRY_MODEL_DIR); it is needed from one of the two.
    const char *model_dir;
    uint64_t seed;            ///< [1]
    int worker_count;         ///< workers in this process [1]
    int tower_count;          ///< towers of a worker; a CPU tower is a share of the cores [1]
    const int *towers_of;     ///< towers of each worker, if they differ; NULL: tower_count each
    int gpu_count;            ///< > 0: so many towers of a worker, on cards (`device`) [0]
    bel_device_choice device; ///< [AUTO]
    const char *gpus;         ///< "0,2": these cards, by the PCI bus; NULL: all that are seen
    bool virtual_devices;     ///< several towers may share a card [false]
    bel_gpu_math gpu_math;    ///< others than EXACT need cards [EXACT]
    /// Where parameters lie and are updated: CPU: in the memory of the process; CUDA: on the cards
    /// of the towers, or an error that says why not; AUTO: there where that can be. With the same
    /// bits. [AUTO]
    bel_device_choice update_device;
    /// Bytes that programs of this process may take of each card's memory, those of all towers that
    /// are on it together; 0: what there is. What does not fit is RESOURCE_EXHAUSTED, as on a
    /// smaller card. INVALID_ARGUMENT where no tower is to be on one. [0]
    int64_t memory_limit;
    int shard_count;         ///< parameter-server shards in this process; 0: as many as workers [1]
    int thread_count;        ///< threads of a tower; 0: cores / towers of this machine [0]
    bel_executor executor;   ///< [SYNC]
    bel_precision precision; ///< [F32]
    bel_products products;   ///< [BELFRY]
    int64_t save_checkpoints_steps;       ///< 0: by time [0]
    double save_checkpoints_secs;         ///< 0: off; ignored when steps are set [600]
    int keep_checkpoint_max;              ///< 0: keep all [5]
    double keep_checkpoint_every_n_hours; ///< keep one for each N hours besides; 0: off [0]
    int64_t save_summary_steps;           ///< events; 0: off [100]
    int64_t log_step_count_steps;         ///< progress, at most once a second; 0: off [100]
    bool train_metrics;                   ///< metrics of training steps, too, as events [false]
    bool report;                          ///< write report.html [true]
    bool allow_changes;        ///< resume although settings that determine the bits changed
    bool averages;             ///< bel_evaluate, bel_predict: moving averages, if there [true]
    int64_t activation_memory; ///< bytes of a tower's values; computes some again; 0: no limit [0]
    int64_t table_memory;      ///< bytes of a table's rows on a shard; 0: no limit [0]
    double stall_timeout_secs; ///< without a step this long, the job fails [600]
    bel_lane_choice lane;      ///< how workers and shards of a cluster exchange [AUTO]
    bel_aggregation aggregation; ///< [SYNC]
    int replicas_to_aggregate;   ///< workers; 0: all of them with SYNC, else 1 [0]
    int max_staleness;           ///< BOUNDED [0]
    bool elastic_rescale; ///< of a cluster: replicas and learning rate follow the number of workers
    /// What TF_CONFIG and launchers of ranks do not say: the chief, or rank 0, is a worker, too, as
    /// for TensorFlow 1; false: it only coordinates, as for TensorFlow 2 [true]
    bool chief_trains;
    int metrics_port;            ///< HTTP port of the master's metrics; 0: none, -1: a free one [0]
    const char *metrics_address; ///< where it listens; NULL: 127.0.0.1
    const char *trace_file;      ///< Chrome trace of all processes, written at the end; NULL: none
    /// Text for model_dir/job.yaml, written by the process that trains (in a cluster the master)
    /// when the folder is locked and what is in it fits; NULL: none.
    const char *job_file;
    bel_average average; ///< what replicas' gradients are weighted by [EXAMPLES]
    /// Sets bel_schedule.scale of every optimizer to R, the replicas whose batches make a step:
    /// bel_estimator_replicas, of backups those that count. Only with SYNC: with ASYNC and BOUNDED
    /// an update is made of replicas_to_aggregate workers' batches, however many workers there are.
    /// [NONE]
    bel_rate_scaling scale_learning_rate;
    /// Leaves out what does not fill a step of all replicas at the end of the input, and says how
    /// much; false: the last step has what is left. [false]
    bool drop_remainder;
    /// Workers note in model_dir/audit which records each step has read, 16 bytes a record, for
    /// `belfry inspect --audit`. Only where all workers count in every update. [false]
    bool audit_input;
    /// Every so many steps the dense parameters that each worker computes on, and each GPU where
    /// they lie on several, are hashed and compared, and a difference ends the job and names the
    /// worker or GPU; 0: at the start alone, and behind a worker's replacement. Only where all
    /// workers count in every update. [0]
    int64_t check_replicas;
    void *user; ///< for the program's functions: bel_estimator_config(estimator)->user [NULL]
    int accumulate_steps; ///< SYNC: batches that each tower computes for an update [1]
    /// Of a cluster: workers run batches of the evaluations of saved versions, too, on a thread of
    /// their own beside training, with the values of the checkpoint in memory while it lasts. The
    /// evaluation's input and model functions are called there. The results have the same bits.
    /// [false]
    bool evaluate_on_workers;
    /// bel_predict: only part predict_part, from 0 on, of predict_parts parts of the input, which
    /// are runs of batches, one behind the other; 0 parts: all of it. So many processes, on
    /// whatever hosts, predict an input, and their rows one behind the other are those of one. [0,
    /// 0]
    int predict_part, predict_parts;
    /// bel_evaluate, bel_predict: bytes of a tower for values of variables. A model that has more
    /// runs in stages, of which the next one's values are read from the checkpoint while one
    /// computes, for every batch again; 0: all are in memory. [0]
    int64_t stage_memory;
    /// An ONNX file that model_dir gets a copy of, source-DIGEST.onnx, when job_file is written;
    /// NULL: none.
    const char *model_file;
} bel_run_config;

/// Sets every field to its default.
BEL_API void bel_run_config_init(bel_run_config *config);

/// Sets the field that a flag of `belfry train_and_evaluate` or `evaluate` sets: ("mode", "async"),
/// ("num_gpus", "4"); all fields but lists (towers_of) and predict_part. Texts are borrowed.
/// INVALID_ARGUMENT: no such flag, or malformed; what is out of range says bel_estimator_create.
BEL_API bel_status *bel_run_config_set(bel_run_config *config, const char *name,
                                       const char *text) BEL_MUST_USE;

/// Takes those flags out of the arguments of a program, which so runs on towers, workers and in
/// modes as its user says: `--NAME VALUE`, `--NAME=VALUE`, and `--NAME` or `--no_NAME` of a switch,
/// up to `--`. All other arguments stay, in their order; *count and arguments are those of main.
/// In a process of a job its cluster says how many workers and servers there are. Texts are
/// borrowed. INVALID_ARGUMENT: a flag without a value, or malformed.
BEL_API bel_status *bel_run_config_flags(bel_run_config *config, int *count,
                                         char **arguments) BEL_MUST_USE;

/// For a program that has taken all its flags out of its arguments, those of a run and its own: a
/// flag that is left, misspelt perhaps, would be passed over without a word. INVALID_ARGUMENT:
/// names the first argument that begins with `--`, up to `--` itself, and the nearest flag of a
/// run.
BEL_API bel_status *bel_refuse_flags(int count, char *const *arguments) BEL_MUST_USE;

/// A parameter of the model, an input or a hook: bel_estimator_param, bel_context_param.
typedef struct bel_param {
    const char *name;
    const char *value;
} bel_param;

#ifdef __cplusplus
}
#endif

#endif
