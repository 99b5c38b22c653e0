// One row a flag. The help text, the checks and the dump of settings all come from here. `when`
// says which other flags this one needs to have an effect: one without effect is refused
// (bel_options_check_read). Where it has the form NAME=VALUE the help text puts it first, so that
// `help` begins with a small letter.
//
// A name may have two rows where no verb takes both. Flags of the groups Model and Optimizer are
// parameters of the model function under their own names (params.c) and part of every
// checkpoint: renaming one makes older checkpoints differ. Defaults are written as they would be
// typed.
#include "flags.h"

#include <string.h>

#include "optim/settings.h"

#define STUDYING (BEL_VERB_CROSS_VALIDATE | BEL_VERB_TUNE) // several trainings
#define TRAINING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN | BEL_VERB_GRAPH | STUDYING)
#define ALONG (BEL_VERB_TRAIN_AND_EVALUATE | STUDYING)        // evaluating while training
#define HOLDING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TUNE) // evaluating on what is given
#define EVALUATING (HOLDING | BEL_VERB_EVALUATE | BEL_VERB_PREDICT)
#define EXPORT BEL_VERB_EXPORT
#define READING (BEL_VERB_EVALUATE | BEL_VERB_PREDICT | EXPORT)
#define RUNNING BEL_VERBS_RUNNING
#define DESCRIBING (TRAINING | BEL_VERB_COLUMNS)
#define BUILDING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN | STARTING) // packages
#define STORED (RUNNING | BEL_VERB_DOCTOR | EXPORT)
#define LOCAL BEL_VERB_LOCAL_TRAIN
#define CERTS BEL_VERB_CERTS
#define STARTING (BEL_VERB_LOCAL_TRAIN | BEL_VERB_JOBS_SUBMIT) // processes of their own
#define PLACING (STARTING | BEL_VERB_RANK)                     // in a cluster
#define JOBS                                                                                       \
    (BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_LIST | BEL_VERB_JOBS_DESCRIBE | BEL_VERB_JOBS_CANCEL |   \
     BEL_VERB_JOBS_REMOVE | BEL_VERB_JOBS_SCALE | BEL_VERB_JOBS_LOGS | BEL_VERB_JOBS_TOP |         \
     BEL_VERB_JOBS_RESUME | BEL_VERB_SUPERVISE)
#define REPORTING                                                                                  \
    (RUNNING | BEL_VERB_COLUMNS | BEL_VERB_INSPECT | BEL_VERB_BENCH | BEL_VERB_DOCTOR |            \
     BEL_VERB_VERSION | BEL_VERB_NEW | BEL_VERB_EXPERIMENT | BEL_VERB_SHELL | CERTS | LOCAL |      \
     BEL_VERB_LOCAL_RANKS | BEL_VERB_CARRY | BEL_VERB_RANK | EXPORT | JOBS) // all
// Of `when`: a flag of evaluations.
#define EVALUATED "eval_files or eval_share or held_out"

#define TYPED BEL_OPTION_COMMAND_LINE_ONLY

#define DATA BEL_FLAG_GROUP_DATA
#define CLUSTER "Cluster"
#define JOB "Job"
#define STUDY "Study"
#define MODEL BEL_FLAG_GROUP_MODEL
#define OPTIMIZER BEL_FLAG_GROUP_OPTIMIZER
#define RUN "Run"
#define CHECKPOINTS "Checkpoints"
#define EVALUATION "Evaluation"
#define OUTPUT "Output"
#define PLATFORM "AI Platform"
#define SETTINGS "Settings"

#define STRING BEL_OPTION_STRING
#define INT BEL_OPTION_INT
#define DOUBLE BEL_OPTION_DOUBLE
#define BOOL BEL_OPTION_BOOL
#define STRINGS BEL_OPTION_STRINGS
#define FILES BEL_OPTION_FILES
#define INTS BEL_OPTION_INTS
#define PAIRS BEL_OPTION_PAIRS

// A flag of each setting of the optimizer. Its form says its type.
#define OPTIMIZER_FLAG(name, form, field, otherwise, accepts, unit, when, key, label, help)        \
    {#name, FLAG_OF_##form, TRAINING, otherwise, accepts, unit, OPTIMIZER, help, when},
#define FLAG_OF_CHOICE STRING
#define FLAG_OF_NUMBER DOUBLE
#define FLAG_OF_WHOLE INT
#define FLAG_OF_SWITCH BOOL
#define FLAG_OF_FACTORS PAIRS
#define FLAG_OF_STEPS INTS
#define FLAG_OF_RATES STRINGS
#define FLAG_OF_FORMULA STRING

// A row stays as it is written:
// clang-format off
static const bel_option table[] = {
    // name, type, verbs, default, accepts, unit, group, help, when it is read
    {"train_files", FILES, TRAINING, "", NULL, "FILE", DATA,
     "Files to train on, or patterns of them: CSV, or one pair of IDX files (images,labels).", NULL},
    {"eval_files", FILES, EVALUATING, "", NULL, "FILE", DATA,
     "Files to evaluate or predict, in the same form; for predict also -, rows of a table on standard input.", NULL},
    {"eval_share", STRING, HOLDING, "", NULL, "SHARE", DATA,
     "in place of --eval_files: hold out this share of the rows to train on, of each class the same, and evaluate on "
     "them: a number such as 0.2, or K/N, part K of N, from 0 on.", "input_format=csv"},
    {"eval_seed", INT, ALONG, "1", "[0, inf)", NULL, DATA,
     "which rows are held out depends on it, and not on --seed.", "eval_share"},
    {"held_out", BOOL, BEL_VERB_EVALUATE | BEL_VERB_PREDICT, "false", NULL, NULL, DATA,
     "Read the rows that the training held out by --eval_share, in place of --eval_files; predict says their numbers.", NULL},
    {"data_dir", STRING, RUNNING, "", NULL, "FOLDER", DATA,
     "Folder in which relative names of data files are looked up.", NULL},
    {"input_format", STRING, RUNNING, "auto", "auto|csv|idx", NULL, DATA,
     "How to read the files; auto takes names with \"idx\" or \"ubyte\", and without \".csv\" or \".tsv\", for IDX.", NULL},
    {"label_column", STRING, RUNNING | BEL_VERB_COLUMNS, "", NULL, "NAME", DATA,
     "column that holds what is to be learned. Without it: one called label, target, class or y, or the last "
     "one; for predict: there is none.", "input_format=csv"},
    {"label_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns of a table that are learned together, each of two classes.", "input_format=csv"},
    {"id_columns", STRINGS, RUNNING, "", NULL, "NAME", DATA,
     "columns of a CSV file that hold texts or numbers which name something: they become ids. "
     "Remembered by checkpoints.", "model=wide_deep"},
    {"id_list_columns", STRINGS, RUNNING, "", NULL, "NAME", DATA,
     "columns of a CSV file that hold several of them, or none, with '|' between: \"3|17|4\". "
     "Remembered by checkpoints.", "model=wide_deep"},
    {"id_list_most", INT, RUNNING, "16", "[1, 1048576]", "ids", DATA,
     "So many ids a value of --id_list_columns may have. Remembered by checkpoints.", "id_list_columns"},
    {"id_list_weights", BOOL, RUNNING, "false", NULL, NULL, DATA,
     "Ids of --id_list_columns may have weights: \"3:0.5|17\". Remembered by checkpoints.", "id_list_columns"},
    {"length_column", STRING, RUNNING, "", NULL, "NAME", DATA,
     "column of a CSV file that holds how many steps of a sequence count; without it all do. "
     "Remembered by checkpoints.", "model=gru|lstm"},
    {"columns", STRING, TRAINING, "auto", NULL, "FILE", DATA,
     "What the columns of a CSV file are (belfry columns). auto: they are looked at, unless flags such as "
     "--feature_scale or --class_count say it; none: all are numbers. Tables that are looked at have "
     "other defaults of the model, batches and passes (docs/columns.md). Remembered by checkpoints.", "input_format=csv"},
    {"categorical", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns, or patterns of them, that hold categories, whatever they look like.", "input_format=csv"},
    {"numeric", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns that hold numbers; other texts in them are errors.", "input_format=csv"},
    {"log_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns of numbers whose logarithm counts: ln (1 + |v|) with the sign of v.", "input_format=csv"},
    {"ignore", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns that are left out.", "input_format=csv"},
    {"key_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns that name a row, and are passed through to predictions.", "input_format=csv"},
    {"weight_column", STRING, DESCRIBING, "", NULL, "NAME", DATA,
     "column that says how much a row counts.", "input_format=csv"},
    {"missing", STRINGS, DESCRIBING, "", NULL, "TEXT", DATA,
     "texts that stand for a missing value, beside an empty one; without it NA, N/A, n/a, #N/A, <NA>, nan, NaN, null, NULL, None, ? and a point.",
     "input_format=csv"},
    {"missing", STRINGS, READING, "", NULL, "TEXT", DATA,
     "more texts that stand for a missing value in these files, beside those that the training began with.",
     "input_format=csv"},
    {"delimiter", STRING, DESCRIBING, "", NULL, "CHARACTER", DATA,
     "what stands between fields, or tab; without it what the first line has most of: comma, semicolon, tab or bar.",
     "input_format=csv"},
    {"decimal", STRING, DESCRIBING, "", ".|,", "CHARACTER", DATA,
     "what stands in front of a number's decimals; without it a comma where the columns say so and it is no delimiter.",
     "input_format=csv"},
    {"path_column", STRING, RUNNING, "path", NULL, "NAME", DATA,
     "column of a CSV file that names a file, for packages that make features of files.", "package"},
    {"header", BOOL, RUNNING | BEL_VERB_COLUMNS, "true", NULL, NULL, DATA,
     "the files begin with a line of column names; with --no_header columns are named 0, 1 …",
     "input_format=csv"},
    {"feature_scale", DOUBLE, RUNNING, "1", NULL, NULL, DATA,
     "Every number of the features is multiplied by it. Remembered by checkpoints.", NULL},
    {"train_batch_size", INT, TRAINING, "128", "[1, 2147483647]", "examples", DATA,
     "Batch of one tower; a step takes one of each tower of each worker.", NULL},
    {"eval_batch_size", INT, EVALUATING | BEL_VERB_CROSS_VALIDATE, "256", "[1, 2147483647]", "examples", DATA,
     "Batch of evaluation and prediction; changes the speed, and the result by rounding alone.", EVALUATED},
    {"shuffle_buffer", INT, TRAINING, "0", "[0, inf)", "examples", DATA,
     "Order is shuffled inside windows of so many examples; 0: over everything; 1: not at all.", NULL},
    {"num_epochs", INT, TRAINING, "0", "[0, 1000000000]", "passes", DATA,
     "Passes over the training data; 0: as many as --train_steps take, or one when that is 0 too.", NULL},
    {"skip_bad_records", INT, TRAINING | BEL_VERB_EVALUATE, "0", "[0, inf)", "records", DATA,
     "Leave out up to so many records that cannot be read, and name them in the log; one more is an error.", NULL},
    {"check_input", BOOL, TRAINING | BEL_VERB_EVALUATE, "true", NULL, NULL, DATA,
     "look at every cell of a table beforehand; with --no_check_input a wrong one ends the run when it is met.",
     "input_format=csv"},
    {"prefetch", INT, RUNNING, "0", "[0, 64]", "batches", DATA,
     "Batches kept ready. 0: 4, and more where they run out again and again, up to 64 and 256 MiB a tower.", NULL},
    {"input_threads", INT, RUNNING, "0", "[0, 64]", "threads", DATA,
     "Threads that make a tower's batches. 0: 1, and on a GPU up to 4 where CSV or IDX is read as it is.", NULL},

    {"model", STRING, RUNNING, "dnn", "linear|dnn|cnn|resnet|wide_deep|gru|lstm|*.onnx", NULL, MODEL,
     "The model, or the file of one that another tool has made (docs/models.md); evaluate and predict take it from "
     "the checkpoint unless told.", NULL},
    {"freeze", STRINGS, TRAINING, "", NULL, "PATTERN", MODEL,
     "*.onnx: variables that are not trained, by their names in the file.", "model=onnx"},
    {"train", STRINGS, TRAINING, "", NULL, "PATTERN", MODEL,
     "*.onnx: constants that are trained although their use does not make them weights.", "model=onnx"},
    {"package", STRING, RUNNING | EXPORT, "", NULL, "FILE", MODEL,
     "A shared object with a model of your own (docs/models.md), in place of --model.", NULL},
    {"package_path", STRING, BUILDING | TYPED, "", NULL, "FOLDER", MODEL,
     "A package's sources, in place of --package: they are built, and kept in the model's folder by "
     "their digest (docs/models.md).", NULL},
    {"module_name", STRING, BUILDING | TYPED, "", NULL, "PACKAGE.NAME", MODEL,
     "Which module of --package_path; without that, PACKAGE is the folder.", NULL},
    {"class_count", INT, RUNNING, "10", "[0, 1048576]", "classes", MODEL,
     "Labels must lie below it; *.onnx: else the output's; 0, for packages only: any label.", NULL},
    {"objective", STRING, RUNNING | BEL_VERB_COLUMNS, "classification",
     "classification|binary|multi_label|regression|huber|quantile|poisson|tweedie", NULL, MODEL,
     "What is learned: one of several classes, several labels, or a number. Without it the label says which of "
     "classification, multi_label and regression.", NULL},
    {"quantile", DOUBLE, RUNNING, "0.5", "(0, 1)", NULL, MODEL,
     "share of labels that is to lie below the prediction.", "objective=quantile"},
    {"huber_delta", DOUBLE, RUNNING, "1", "(0, inf)", "deviations", MODEL,
     "errors above it count in proportion to their size, others to its square.", "objective=huber"},
    {"tweedie_power", DOUBLE, RUNNING, "1.5", "(1, 2)", NULL, MODEL,
     "power of the mean that the variance grows with.", "objective=tweedie"},
    {"class_weights", STRING, TRAINING, "", NULL, "CLASS=WEIGHT,..", MODEL,
     "how much classes count in the loss of training: balanced, as if all had as many rows; or some by name, the others "
     "1; of files of numbers a number for each class.", "objective=classification|binary"},
    {"positive_class", STRING, TRAINING, "", NULL, "CLASS", MODEL,
     "of two classes the one that precision and recall are of; without it of a table the rarer one, else 1.",
     "objective=classification|binary"},
    {"threshold", DOUBLE, RUNNING, "0.5", "[0, 1]", NULL, MODEL,
     "of two classes, and of each of several labels, the second one is predicted when its probability is above it.",
     "objective=classification|binary|multi_label"},
    {"wide_numbers", BOOL, RUNNING, "false", NULL, NULL, MODEL,
     "numbers have weights of their own beside the hidden layers, too.", "model=wide_deep"},
    {"hidden_units", INTS, RUNNING, "512,512", "[1, 1048576]", "units", MODEL,
     "sizes of the hidden layers.", "model=dnn|wide_deep"},
    {"embedding_width", INT, RUNNING, "16", "[1, 4096]", "floats", MODEL,
     "width of an id's row.", "model=wide_deep|dnn|linear"},
    {"id_list_combiner", STRING, RUNNING, "mean", "sum|mean|sqrtn", NULL, MODEL,
     "What becomes of the rows of a value of --id_list_columns: their weighted sum, alone or over the "
     "sum of the weights or the root of that of their squares.", "id_list_columns"},
    {"filters", INTS, RUNNING, "32,64", "[1, 65536]", "channels", MODEL,
     "outputs of the convolutions, each with a pool behind it.", "model=cnn"},
    {"image_shape", INTS, RUNNING, "", "[1, 65536]", "pixels", MODEL,
     "channels, height and width of an example; empty: one square channel.", "model=cnn|resnet"},
    {"window", INT, RUNNING, "5", "[1, 64]", "pixels", MODEL, "height and width of a convolution's window.", "model=cnn"},
    {"dense_units", INTS, RUNNING, "512", "[1, 1048576]", "units", MODEL,
     "sizes of the dense layers behind the convolutions.", "model=cnn"},
    {"blocks", INT, RUNNING, "3", "[1, 100]", "blocks", MODEL, "blocks of each of the three stages; it has 6 times so many layers, and 2.", "model=resnet"},
    {"width", INT, RUNNING, "16", "[1, 16384]", "channels", MODEL,
     "filters of the first stage; the others have 2 and 4 times as many.", "model=resnet"},
    {"batch_norm", STRING, RUNNING, "local", "local|merged|sync", NULL, MODEL,
     "statistics of batch normalisation: local, each replica's own; merged, moving ones of all replicas' examples; "
     "sync, it normalises by them, too.", "model=resnet"},
    {"recurrent_units", INTS, RUNNING, "128", "[1, 16384]", "units", MODEL,
     "sizes of the recurrent layers.", "model=gru|lstm"},
    {"sequence_width", INT, RUNNING, "1", "[1, 1048576]", "columns", MODEL,
     "columns of one time step; a record's columns are its steps, one after another.", "model=gru|lstm"},
    {"wide_optimizer", STRING, RUNNING, "same", "same|sgd|adagrad|adam|ftrl", NULL, MODEL,
     "what trains the weights of single ids; same: --optimizer.", "model=wide_deep"},
    {"wide_learning_rate", DOUBLE, RUNNING, "0.1", "(0, 1000000]", NULL, MODEL,
     "its learning rate.", "wide_optimizer"},
    {"dropout", DOUBLE, RUNNING, "0", "[0, 1)", NULL, MODEL,
     "share of a hidden or dense layer's outputs left out in training.", "model=dnn|cnn|wide_deep"},
    {"l2", DOUBLE, RUNNING, "0", "[0, inf)", NULL, MODEL,
     "penalty: this times half the sum of the kernels' squares is added to the loss.",
     "model=linear|dnn|cnn|resnet|wide_deep|gru|lstm"},
    {"param", PAIRS, RUNNING | EXPORT, "", NULL, NULL, MODEL,
     "A parameter for a package's model function; repeat the flag for more.", "package"},

    BEL_OPTIMIZER_SETTINGS(OPTIMIZER_FLAG)

    {"distributed", BOOL, LOCAL, "false", NULL, NULL, CLUSTER,
     "A process for each role, on this machine; otherwise everything is one process.", NULL},
    {"worker_count", INT, PLACING, "2", "[0, 1024]", "workers", CLUSTER,
     "Workers; more than 0 unless the master trains.", NULL},
    {"worker_count", INT, BEL_VERB_JOBS_SCALE, "1", "[1, 1024]", "workers", CLUSTER,
     "Workers that the job is to go on with.", NULL},
    {"parameter_server_count", INT, PLACING, "1", "[0, 1024]", "servers", CLUSTER,
     "Parameter servers; 0: every worker holds a shard.", NULL},
    {"evaluator_count", INT, PLACING, "0", "[0, 1]", "evaluators", CLUSTER,
     "1: a process of its own evaluates the checkpoints; 0: the master does.", NULL},
    {"config", STRING, PLACING | STUDYING, "", NULL, "FILE", CLUSTER,
     "cluster.yaml, which says what processes there are; counts that are given as flags win.", NULL},
    {"tcp", BOOL, LOCAL, "false", NULL, NULL, CLUSTER,
     "Ports on the loopback address in place of unix sockets.", NULL},
    {"restarts", INT, STARTING, "10", "[0, 1000000]", NULL, CLUSTER,
     "How often each process is started anew when it was killed; 0: its death ends the job.", NULL},
    {"min_workers", INT, STARTING, "0", "[0, 1024]", "workers", CLUSTER,
     "So many workers are enough to go on when others do not come back; 0: all are needed.", NULL},
    {"rank_count", INT, BEL_VERB_LOCAL_RANKS, "2", "[1, 64]", "ranks", CLUSTER,
     "How often the program is started; each is told which rank it is.", NULL},
    {"dry_run", BOOL, STARTING, "false", NULL, NULL, CLUSTER,
     "Print the plan of processes, and what an engine would be given, and end.", NULL},
    {"cluster", STRING, BEL_VERB_DOCTOR, "", NULL, "FILE", CLUSTER,
     "cluster.yaml: check this host, and by ssh the others, for a job of it.", NULL},
    {"hosts", STRINGS, CERTS, "", NULL, "HOST", CLUSTER,
     "Names and addresses by which the job's processes are called; without it this host's name. The loopback's "
     "come along.", NULL},
    {"days", INT, CERTS, "365", "[1, 36500]", "days", CLUSTER,
     "How long host.pem is good from now on; a new authority is for ten years, or as long.", NULL},

    {"folds", INT, BEL_VERB_CROSS_VALIDATE, "5", "[2, 1000]", "folds", STUDY,
     "Parts of the data; each is evaluated on by a model that is trained on all others.", NULL},
    {"folds", INT, BEL_VERB_TUNE, "0", "[0, 1000]", "folds", STUDY,
     "A trial is a cross-validation of so many folds, and its score their mean; 0: it is one training, evaluated on "
     "--eval_files or --eval_share.", NULL},
    {"try", PAIRS, BEL_VERB_TUNE, "", NULL, "NAME=VALUES", STUDY,
     "A flag that is varied: LOW:HIGH, log:LOW:HIGH, int:LOW:HIGH or A|B|C; repeat it for more.", NULL},
    {"trials", INT, BEL_VERB_TUNE, "20", "[2, 1000]", "trials", STUDY,
     "How many; the first has the flags as they are.", NULL},
    {"tune_seed", INT, BEL_VERB_TUNE, "1", "[0, inf)", NULL, STUDY,
     "What is drawn depends on it, and not on --seed.", NULL},
    {"parallel", INT, STUDYING, "0", "[0, 1024]", "trainings", STUDY,
     "So many at a time; 0: one for each core, or as many as have GPUs of their own. They share cores and GPUs.", NULL},

    {"job_dir", STRING, PLACING, "", NULL, "FOLDER", JOB,
     "--model_dir of the training flags, unless they have one; then logs go here.", NULL},
    {"log_dir", STRING, LOCAL, "", NULL, "FOLDER", JOB,
     "Where the log of each process goes. Without it: logs in the model's folder.", NULL},
    {"engine", STRING, BEL_VERB_JOBS_SUBMIT, "local", NULL, "NAME", JOB,
     "What runs the job: local, processes on this machine; ssh or mpi, on the hosts of --config; slurm; kubernetes.", NULL},
    {"wait", BOOL, BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_RESUME, "false", NULL, NULL, JOB,
     "Return when the job has ended, with its exit code.", NULL},
    {"replace", BOOL, BEL_VERB_JOBS_SUBMIT, "false", NULL, NULL, JOB,
     "Take the name of a job that has ended; its record and logs are removed.", NULL},
    {"follow", BOOL, BEL_VERB_JOBS_LOGS, "true", NULL, NULL, JOB, "Go on until the job has ended.", NULL},

    {"model_dir", STRING, STORED, "", NULL, "FOLDER", RUN,
     "Folder of checkpoints, event files and report; training resumes from what is there.", NULL},
    {"train_steps", INT, TRAINING, "0", "[0, inf)", "steps", RUN,
     "Train up to this step, counted from the first run; 0: until the data ends.", NULL},
    {"train_secs", DOUBLE, TRAINING, "0", "[0, 1000000000]", "s", RUN,
     "End well when training has taken so long in this run; 0: no limit.", NULL},
    {"seed", INT, TRAINING, "1", "[0, inf)", NULL, RUN,
     "Initial values, order of the data and dropout depend on it and on nothing else.", NULL},
    {"seed", INT, BEL_VERB_EXPERIMENT, "1", "[0, inf)", NULL, RUN, "The numbers depend on it.", NULL},
    {"seed", INT, BEL_VERB_BENCH, "1", "[0, inf)", NULL, RUN, "The elements of inputs depend on it.", NULL},
    {"batch", INT, BEL_VERB_BENCH, "1", "[1, 1000000]", "examples", RUN,
     "The first open dimension of a model.", NULL},
    {"length", INT, BEL_VERB_BENCH, "32", "[0, 1000000]", NULL, RUN,
     "Other open dimensions of a model.", NULL},
    {"threads", INT, BEL_VERB_BENCH, "1", "[1, 1024]", "threads", RUN, "Threads that run a model.", NULL},
    {"stage_memory", INT, BEL_VERB_BENCH | BEL_VERB_EVALUATE | BEL_VERB_PREDICT, "0", "[0, 8388608]", "MiB", RUN,
     "So much memory for weights: a model that has more runs in stages, whose weights are read while the one before "
     "computes; 0: all are in memory.", NULL},
    {"seconds", DOUBLE, BEL_VERB_BENCH, "3", "[0.001, 86400]", "s", RUN,
     "How long it is measured, all models together.", NULL},
    {"against", STRING, BEL_VERB_BENCH, "", NULL, "MODEL", RUN,
     "Another model: rounds alternate, and the ratio is its median time over that of the first.", NULL},
    {"num_gpus", INT, RUNNING, "0", "[0, 256]", "towers", RUN,
     "Towers of each worker, each on a GPU; where there is none they share the processor's cores. 0: one "
     "tower, with device auto on the processor.", NULL},
    {"device", STRING, RUNNING, "auto", "auto|cpu|cuda", NULL, RUN,
     "What towers run on. auto: with num_gpus or gpu_math GPUs where there are any, else the processor's cores; "
     "cuda: GPUs, with num_gpus 0 one. With gpu_math exact the results are the same.", NULL},
    {"gpus", STRING, RUNNING, "", NULL, "LIST", RUN,
     "Which GPUs num_gpus takes, such as 0,2, in the order of the PCI bus; empty: all that are seen.", NULL},
    {"virtual_devices", BOOL, RUNNING, "false", NULL, NULL, RUN,
     "Let several towers share a GPU where there are fewer; else that is an error.", NULL},
    {"gpu_math", STRING, RUNNING, "exact", "exact|f32|tf32|bf16", NULL, RUN,
     "How GPUs multiply: exact, with the processor's bits, or by cuBLASLt and cuDNN in f32, tf32 or bf16, which is "
     "faster, with the same bits from run to run on one kind of GPU.", NULL},
    {"update_device", STRING, TRAINING, "auto", "auto|cpu|cuda", NULL, RUN,
     "Where parameters lie and are updated. cpu: in the memory of the process; cuda: on the GPUs of the towers; auto: "
     "there where that can be. The results are the same.", NULL},
    {"memory_limit", INT, RUNNING, "0", "[0, 8388608]", "MiB", RUN,
     "Memory of each GPU that this process may take, for parameters and what towers compute; 0: what there is.",
     NULL},
    {"num_workers", INT, RUNNING, "1", "[1, 1024]", "workers", RUN, "Workers in this process.", NULL},
    {"towers_of_workers", INTS, TRAINING, "", "[1, 256]", "towers", RUN,
     "Towers of each worker where they differ; as many numbers as there are workers.", NULL},
    {"parameter_server_count", INT, TRAINING, "1", "[0, 1024]", "shards", RUN,
     "Parameter-server shards in this process; 0: as many as workers.", NULL},
    {"num_threads", INT, RUNNING, "0", "[0, 1024]", "threads", RUN,
     "Threads of each tower; 0: the cores divided by the towers.", NULL},
    {"executor", STRING, RUNNING, "sync", "sync|async", NULL, RUN,
     "How a tower runs a model: operation by operation, or each as soon as its inputs are there, which "
     "helps models with branches.", NULL},
    {"products", STRING, RUNNING, "belfry", "belfry|openblas", NULL, RUN,
     "Who multiplies matrices: Belfry, with the same bits on every processor, or OpenBLAS, whose bits depend on its "
     "version and on the kernels that it chooses by the processor.", NULL},
    {"precision", STRING, TRAINING, "f32", "f32|bf16", NULL, RUN,
     "Type in which activations are kept for the backward pass; bf16 takes half the memory for them. "
     "Everything is computed in f32.", NULL},
    {"activation_memory", INT, TRAINING, "0", "[0, 8388608]", "MiB", RUN,
     "Memory that a tower may take for the values of a step; what does not fit is computed again when the "
     "backward pass needs it, with the same bits. 0: no limit.", NULL},
    {"stall_timeout", DOUBLE, TRAINING, "600", "[0.001, 1000000000]", "s", RUN,
     "Training without progress for so long is an error.", NULL},
    {"mode", STRING, TRAINING, "sync", "sync|async|bounded", NULL, RUN,
     "When workers' reports become an update: together, each as it comes, or so within "
     "--max_staleness.", NULL},
    {"replicas_to_aggregate", INT, TRAINING, "0", "[0, 1024]", "workers", RUN,
     "So many workers' reports make an update; 0: all with --mode sync, else 1. Fewer than there "
     "are: the others are backups; more: workers take turns.", NULL},
    {"accumulate_steps", INT, TRAINING, "1", "[1, 1024]", "batches", RUN,
     "Batches that each tower computes, one after another, before an update is made of all of them "
     "(gradient accumulation): the batch of a step is so many times as large, in the same memory.", NULL},
    {"max_staleness", INT, TRAINING, "0", "[0, 1000000000]", "steps", RUN,
     "how far a worker may run ahead of the slowest.", "mode=bounded"},
    {"average", STRING, TRAINING, "examples", "examples|replicas|sum", NULL, RUN,
     "What an update is made of: the mean of the replicas' gradients, weighted by their examples, or each once; "
     "or their sum.", NULL},
    {"scale_learning_rate", STRING, TRAINING, "none", "none|linear|always", NULL, RUN,
     "linear: learning rates are multiplied by the number of replicas whose batches make a step, and --warmup_steps "
     "rise to that from the rate itself; always: also with --average sum.", NULL},
    {"drop_remainder", BOOL, TRAINING, "false", NULL, NULL, RUN,
     "Leave out what does not fill a step of all replicas at the end of the data, and say how much; "
     "else the last step has what is left.", NULL},
    {"elastic_rescale", BOOL, TRAINING, "false", NULL, NULL, RUN,
     "In a cluster: when the number of workers changes, so do replicas and, by the same factor, the "
     "learning rate.", NULL},
    {"chief_trains", BOOL, TRAINING, "true", NULL, NULL, RUN,
     "Of processes that another launcher has started: the chief of TF_CONFIG, or rank 0, is a worker, too; else it only "
     "coordinates.", NULL},
    {"table_memory", INT, TRAINING, "0", "[0, 8388608]", "MiB", RUN,
     "What the rows of a table may take on a shard; 0: no limit.", "model=wide_deep"},
    {"lane", STRING, TRAINING, "auto", "auto|shm|grpc", NULL, RUN,
     "How the processes of a cluster exchange; auto: through shared memory on one host.", NULL},

    {"save_checkpoints_steps", INT, TRAINING, "0", "[0, inf)", "steps", CHECKPOINTS,
     "Save every so many steps; 0: by time.", NULL},
    {"save_checkpoints_secs", DOUBLE, TRAINING, "600", "[0, 1000000000]", "s", CHECKPOINTS,
     "Save every so many seconds; 0: only at the end.", "!save_checkpoints_steps"},
    {"keep_checkpoint_max", INT, TRAINING, "5", "[0, 1000000]", "checkpoints", CHECKPOINTS,
     "How many are kept; 0: all.", NULL},
    {"keep_checkpoint_every_n_hours", DOUBLE, TRAINING, "0", "[0, 1000000000]", "hours", CHECKPOINTS,
     "Keep one of every so many hours besides; 0: none.", "keep_checkpoint_max!=0"},
    {"keep_best", STRING, ALONG, "", NULL, "METRIC", CHECKPOINTS,
     "Keep the checkpoint whose evaluation has the best METRIC besides; --best reads it.", EVALUATED},
    {"warm_start", STRING, TRAINING, "", NULL, "FOLDER", CHECKPOINTS,
     "A new run begins with values of this checkpoint, or of the newest in this model's folder.", NULL},
    {"warm_start_variables", STRINGS, TRAINING, "", NULL, "PATTERN", CHECKPOINTS,
     "Variables that do; else all.", "warm_start"},
    {"warm_start_names", PAIRS, TRAINING, "", NULL, "HERE=THERE", CHECKPOINTS,
     "What a variable is called in the checkpoint; a * at the end of both stands for what is left of the name.",
     "warm_start"},
    {"allow_changes", BOOL, TRAINING, "false", NULL, NULL, CHECKPOINTS,
     "Resume although flags or data that determine the result have changed.", NULL},
    {"checkpoint", STRING, READING, "", NULL, "FOLDER", CHECKPOINTS,
     "A checkpoint's folder; without it the newest in --model_dir.", NULL},
    {"best", BOOL, READING, "false", NULL, NULL, CHECKPOINTS,
     "Read the checkpoint in --model_dir that --keep_best has kept, not the newest.", NULL},

    {"eval_every_steps", INT, ALONG, "0", "[0, inf)", "steps", EVALUATION,
     "Evaluate every so many steps; 0: at checkpoints.", EVALUATED},
    {"eval_steps", INT, ALONG | BEL_VERB_EVALUATE, "0", "[0, inf)", "batches",
     EVALUATION, "Batches of an evaluation; 0: all data.", EVALUATED},
    {"evaluate_on_workers", BOOL, ALONG, "false", NULL, NULL, EVALUATION,
     "In a cluster: workers run batches of the evaluations of checkpoints, too.", EVALUATED},
    {"early_stopping", STRING, ALONG, "0", NULL, "[METRIC:]N", EVALUATION,
     "End when N evaluations in a row were not better, by METRIC or without it by --best_metric; 0: never.",
     EVALUATED},
    {"min_delta", DOUBLE, ALONG, "0", "[0, inf)", NULL, EVALUATION,
     "For --early_stopping better is what differs by more than this.", "early_stopping"},
    {"best_metric", STRING, ALONG, "loss", NULL, "NAME", EVALUATION,
     "What --early_stopping without a METRIC and --export best compare.", "early_stopping or export or best_goal"},
    {"best_goal", STRING, ALONG, "auto", "auto|min|max", NULL, EVALUATION,
     "Which of two values of --best_metric is better, and of a metric of which that is not known; auto: as is known "
     "by its name, such as max of accuracy and min of loss.", "early_stopping or export or keep_best"},
    {"export", STRINGS, ALONG, "", NULL, "KIND", EVALUATION,
     "Keep evaluated versions apart, in export/KIND of the model's folder: best, latest, final.", EVALUATED},
    {"export_keep", INT, ALONG, "0", "[0, 1000000]", "versions", EVALUATION,
     "So many of each kind stay; 0: 1 of best, 5 of others.", "export"},
    {"outputs", STRINGS, BEL_VERB_PREDICT, "", NULL, "NAME", OUTPUT,
     "Predictions to write, in this order: \"predictions\" and names that the model gives; else all.",
     NULL},
    {"keep_columns", STRINGS, BEL_VERB_PREDICT, "", NULL, "NAME", OUTPUT,
     "Columns of the files that are written in front of each prediction, behind those of --key_columns.", NULL},
    {"part", STRING, BEL_VERB_PREDICT, "", NULL, "K/N", OUTPUT,
     "Predict only part K, from 0 on, of N parts of the input: parts one behind the other are the whole. ranks: the "
     "processes of mpirun, srun, torchrun or local ranks share the input, and the first one prints all.", NULL},
    {"export_dir", STRING, EXPORT, "", NULL, "FOLDER", OUTPUT,
     "Folder to write to: a new one, or an earlier export, which is replaced. Without it: export/STEP in the "
     "model's folder.", NULL},
    {"training", BOOL, EXPORT, "false", NULL, NULL, OUTPUT,
     "Write what a program goes on learning with (belfry/learner.h), in place of the model; --export_dir is a new folder, "
     "without it export/STEP-training in the model's folder.", NULL},
    {"opset", INT, EXPORT, "17", "[13, 17]", NULL, OUTPUT, "Version of ONNX's operators in model.onnx.", "!training"},
    {"tables", STRING, EXPORT, "places", "places|inline", NULL, OUTPUT,
     "What the model takes for ids of tables: their places among the keys, or the ids themselves, which it looks up "
     "among up to 65,536 keys.", "!training"},
    {"external_data", BOOL, EXPORT, "false", NULL, NULL, OUTPUT,
     "Values stand in weights.safetensors alone, to which model.onnx points; always above 1 GiB.", "!training"},
    {"averages", BOOL, READING, "true", NULL, NULL, EVALUATION,
     "Use moving averages of the parameters where the checkpoint has them.", NULL},
    {"eval_start_delay_secs", DOUBLE, ALONG, "0", "[0, 1000000000]", "s", EVALUATION,
     "Evaluate at checkpoints not before so long after the start.", EVALUATED},
    {"eval_throttle_secs", DOUBLE, ALONG, "0", "[0, 1000000000]", "s", EVALUATION,
     "Evaluate at checkpoints at most this often.", EVALUATED},

    {"save_summary_steps", INT, TRAINING, "100", "[0, inf)", "steps", OUTPUT,
     "Write event files every so many steps; 0: never.", NULL},
    {"log_step_count_steps", INT, TRAINING, "100", "[0, inf)", "steps", OUTPUT,
     "Log progress every so many steps, but no more than once a second; 0: never.", NULL},
    {"trace", STRING, TRAINING | PLACING, "", NULL, "FILE", OUTPUT,
     "Write a trace of all processes for chrome://tracing or ui.perfetto.dev, at the end.", NULL},
    {"metrics_port", INT, TRAINING | PLACING, "0", "[-1, 65535]", NULL, OUTPUT,
     "Port on which the job's numbers can be read while it runs, by Prometheus at /metrics; 0: none, -1: "
     "a free one, which the log names.", NULL},
    {"metrics_address", STRING, TRAINING | PLACING, "127.0.0.1", NULL, "ADDRESS", OUTPUT,
     "Address of that port; 0.0.0.0: all of this host.", "metrics_port"},
    {"train_metrics", BOOL, TRAINING, "false", NULL, NULL, OUTPUT,
     "Metrics of training steps, too, in event files every --save_summary_steps.", "save_summary_steps!=0"},
    {"report", BOOL, TRAINING, "true", NULL, NULL, OUTPUT, "Write report.html.", NULL},
    {"audit_input", BOOL, TRAINING, "false", NULL, NULL, OUTPUT,
     "Note which records each step reads, 16 bytes a record, for inspect --audit.", NULL},
    {"check_replicas", INT, TRAINING, "0", "[0, inf)", "steps", OUTPUT,
     "Compare the parameters that all workers, and GPUs, compute on every so many steps; 0: at the start alone.", NULL},
    {"audit", BOOL, BEL_VERB_INSPECT, "false", NULL, NULL, OUTPUT,
     "Check that every record was read exactly once in each epoch.", "!compare"},
    {"digest", BOOL, BEL_VERB_INSPECT, "false", NULL, NULL, OUTPUT,
     "Print the digest alone, recomputed from the files.", "!compare"},
    {"compare", STRING, BEL_VERB_INSPECT, "", NULL, "FOLDER", OUTPUT,
     "Another folder: name the first tensor that differs; exit code 1 when one does.", NULL},
    {"cost", BOOL, BEL_VERB_GRAPH, "false", NULL, NULL, OUTPUT,
     "Run the step and say the time of each instruction, beside what is expected of it.", "!dump"},
    {"dump", BOOL, BEL_VERB_GRAPH, "false", NULL, NULL, OUTPUT,
     "Write the graph before and after it is rewritten, instead of the program.", NULL},
    {"passes", STRINGS, BEL_VERB_GRAPH, "all", NULL, "PASS", OUTPUT,
     "What rewrites the graph: simplify, fold, same, concat, join, fuse; all; none.", NULL},
    {"json", BOOL, REPORTING & ~(unsigned)BEL_VERB_LOCAL_RANKS, "false", NULL, NULL, OUTPUT,
     "Results on stdout as JSON, one object on a line.", NULL},
    {"log_format", STRING, REPORTING, "text", "text|json", NULL, OUTPUT,
     "Form of the log on stderr.", NULL},
    {"log_level", STRING, REPORTING, "info", "error|warn|info|debug", NULL, OUTPUT,
     "Least important lines that are logged.", NULL},
    {"log_time", BOOL, REPORTING, "false", NULL, NULL, OUTPUT,
     "Lines of the log begin with the time; as JSON they always have it.", "log_format=text"},
    {"quiet", BOOL, REPORTING, "false", NULL, NULL, OUTPUT, "Log warnings and errors only.", NULL},

    {"region", STRING, STARTING, "", NULL, "NAME", PLATFORM, "Passed over.", NULL},
    {"runtime_version", STRING, STARTING, "", NULL, "VERSION", PLATFORM, "Passed over.", NULL},
    {"python_version", STRING, STARTING, "", NULL, "VERSION", PLATFORM, "Passed over.", NULL},
    {"staging_bucket", STRING, STARTING, "", NULL, "BUCKET", PLATFORM, "Passed over.", NULL},
    {"packages", STRINGS, STARTING, "", NULL, "FILE", PLATFORM, "Passed over.", NULL},
    {"project", STRING, STARTING, "", NULL, "NAME", PLATFORM, "Passed over.", NULL},
    {"labels", STRINGS, BEL_VERB_JOBS_SUBMIT, "", NULL, "KEY=VALUE", PLATFORM, "Passed over.", NULL},
    {"async", BOOL, BEL_VERB_JOBS_SUBMIT, "true", NULL, NULL, PLATFORM, "Passed over: a job goes on by itself.", NULL},
    {"start_port", INT, LOCAL, "27182", "[1, 65535]", NULL, PLATFORM, "Passed over: ports are free ones.", NULL},
    {"scale_tier", STRING, BEL_VERB_JOBS_SUBMIT, "", NULL, "TIER", PLATFORM,
     "That of the file in --config; where that has none, or without a file, it says which processes there are.", NULL},
    {"stream_logs", BOOL, BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_RESUME, "false", NULL, NULL, PLATFORM,
     "Show what the job's processes say, until it has ended.", NULL},

    {"config_file", STRING, RUNNING | TYPED, "", NULL, "FILE", SETTINGS,
     "YAML file with any of these flags, as \"name: value\"; the command line wins.", NULL},
    {"print_config", BOOL, RUNNING | TYPED, "false", NULL, NULL, SETTINGS,
     "Print all settings as YAML with their origins, and end.", NULL},
    {"enable_faults", BOOL, REPORTING, "false", NULL, NULL, SETTINGS,
     "Let BELFRY_FAULT count, also in the processes of a job (docs/operations.md); else it is refused.", NULL},
    {"h", BOOL, REPORTING | TYPED, "false", NULL, NULL, SETTINGS, "Print the flags that most users need, and end.", NULL},
    {"help", BOOL, REPORTING | TYPED, "false", NULL, NULL, SETTINGS,
     "Print all flags, and end. With words after it: those flags that have all of the words in their name or text.", NULL},
};
// clang-format on

enum { FLAG_COUNT = sizeof table / sizeof table[0] };

bel_options *bel_flags_create(unsigned verb)
{
    bel_options *options = bel_options_create(table, FLAG_COUNT, verb);
    bel_options_know_words(options, bel_flag_words);
    bel_options_know_common(options, bel_common_flags);
    if ((verb & (BEL_VERB_LOCAL_TRAIN | BEL_VERB_JOBS_SUBMIT)) != 0)
        bel_options_say_elsewhere(options, "hint: flags of the training stand behind --");
    return options;
}

const char *bel_flags_in_group(const char *group, size_t index)
{
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (strcmp(table[i].group, group) == 0 && index-- == 0) return table[i].name;
    return NULL;
}
