// Table of all flags, one row each, for the help text, the checks and the dump of settings. `when`
// names the other flags that this one needs: a flag without effect is refused
// (bel_options_check_read). The help text begins with a `when` of the form NAME=VALUE, so `help`
// of such a row begins with a small letter.
//
// A name may have two rows if no verb accepts both. Flags of the groups Model and Optimizer are
// parameters of the model function under the same names (params.c) and part of every checkpoint:
// renaming one makes older checkpoints differ. Defaults are written as a user would type them.
#include "command/flags.h"

#include <string.h>

#include "estimator/run_settings.h"
#include "optim/settings.h"

#define STUDYING (BEL_VERB_CROSS_VALIDATE | BEL_VERB_TUNE) // several trainings
#define TRAINING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN | BEL_VERB_GRAPH | STUDYING)
#define ALONG (BEL_VERB_TRAIN_AND_EVALUATE | STUDYING)        // evaluating while training
#define HOLDING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TUNE) // evaluating on what is given
#define EVALUATING (HOLDING | BEL_VERB_EVALUATE | BEL_VERB_PREDICT)
#define EXPORT BEL_VERB_EXPORT
#define READING (BEL_VERB_EVALUATE | BEL_VERB_PREDICT | EXPORT)
#define SAVED (READING | BEL_VERB_GENERATE) // read a checkpoint
#define RUNNING BEL_VERBS_RUNNING
#define TOKENIZING (BEL_VERB_TOKENS_TRAIN | BEL_VERB_TOKENS_ENCODE)
#define TOKENS (TOKENIZING | BEL_VERB_TOKENS_DECODE)
#define DESCRIBING (TRAINING | BEL_VERB_COLUMNS)
#define BUILDING (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN | STARTING) // packages
#define STORED (RUNNING | BEL_VERB_DOCTOR | EXPORT | BEL_VERB_GENERATE)
#define LOCAL BEL_VERB_LOCAL_TRAIN
#define CERTS BEL_VERB_CERTS
#define SERVE BEL_VERB_SERVE
#define STARTING (BEL_VERB_LOCAL_TRAIN | BEL_VERB_JOBS_SUBMIT) // start separate processes
#define PLACING (STARTING | BEL_VERB_RANK)                     // place them in a cluster
#define JOBS                                                                                       \
    (BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_LIST | BEL_VERB_JOBS_DESCRIBE | BEL_VERB_JOBS_CANCEL |   \
     BEL_VERB_JOBS_REMOVE | BEL_VERB_JOBS_SCALE | BEL_VERB_JOBS_LOGS | BEL_VERB_JOBS_TOP |         \
     BEL_VERB_JOBS_RESUME | BEL_VERB_SUPERVISE)
#define REPORTING                                                                                  \
    (RUNNING | BEL_VERB_COLUMNS | BEL_VERB_INSPECT | BEL_VERB_BENCH | BEL_VERB_DOCTOR |            \
     BEL_VERB_VERSION | BEL_VERB_NEW | BEL_VERB_EXPERIMENT | BEL_VERB_SHELL | CERTS | LOCAL |      \
     BEL_VERB_LOCAL_RANKS | BEL_VERB_CARRY | BEL_VERB_RANK | EXPORT | JOBS | TOKENS |              \
     BEL_VERB_GENERATE | SERVE | BEL_VERB_PLAN | BEL_VERB_BISECT) // all
#define TELLING                                                   /* print no results as JSON */   \
    (BEL_VERB_LOCAL_RANKS | BEL_VERB_JOBS_CANCEL | BEL_VERB_JOBS_REMOVE | BEL_VERB_JOBS_SCALE |    \
     BEL_VERB_NEW | BEL_VERB_SHELL | TOKENS | BEL_VERB_GENERATE | SERVE)
// `when` of a flag of evaluations.
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
#define SERVER "Server"
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

// Row of an optimizer's setting; the type follows from its form.
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

// Row of a setting of a run; the type follows from its form.
#define RUN_FLAG(group, name, form, verbs, otherwise, accepts, unit, help, when)                   \
    {#name, RUN_FLAG_OF_##form, verbs, otherwise, accepts, unit, group, help, when},
#define RUN_FLAG_OF_TEXT STRING
#define RUN_FLAG_OF_INT INT
#define RUN_FLAG_OF_WHOLE INT
#define RUN_FLAG_OF_UNSIGNED INT
#define RUN_FLAG_OF_MIB INT
#define RUN_FLAG_OF_SECS DOUBLE
#define RUN_FLAG_OF_REAL DOUBLE
#define RUN_FLAG_OF_SWITCH BOOL
#define RUN_FLAG_OF_CHOICE STRING

// A row keeps its line breaks:
// clang-format off
static const bel_option table[] = {
    // name, type, verbs, default, accepts, unit, group, help, when it is read
    {"train_files", FILES, TRAINING, "", NULL, "FILE", DATA,
     "Files to train on, or patterns of them: CSV, or one pair of IDX files (images,labels).", NULL},
    {"follow", BOOL, BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN, "false", NULL, NULL, DATA,
     "The one CSV file of --train_files grows, or files appear that match its pattern: train on each row once (docs/follow.md).", NULL},
    {"follow_timeout", DOUBLE, BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN, "60", "(0, 1e9]", "s", DATA,
     "Time without a new row after which training ends.", "follow"},
    {"eval_files", FILES, EVALUATING, "", NULL, "FILE", DATA,
     "Files to evaluate or predict, in the same form; for predict also -, rows of a table on standard input.", NULL},
    {"eval_share", STRING, HOLDING, "", NULL, "SHARE", DATA,
     "instead of --eval_files: hold out this share of the training rows, the same of each class, and evaluate on "
     "them: a number such as 0.2, or K/N, part K of N, from 0 on. Of texts: the last contexts, or the part's.", "input_format=csv|text|jsonl|tokens"},
    {"eval_seed", INT, ALONG, "1", "[0, inf)", NULL, DATA,
     "seed of the choice of rows; independent of --seed.", "eval_share"},
    {"held_out", BOOL, BEL_VERB_EVALUATE | BEL_VERB_PREDICT, "false", NULL, NULL, DATA,
     "Read the rows that the training's --eval_share held out, instead of --eval_files; predict prints their numbers.", NULL},
    {"data_dir", STRING, RUNNING, "", NULL, "FOLDER", DATA,
     "Folder in which relative names of data files are looked up.", NULL},
    {"input_format", STRING, RUNNING, "auto", "auto|csv|idx|text|jsonl|tokens", NULL, DATA,
     "How to read the files; auto: IDX if the name has \"idx\" or \"ubyte\", and no \".csv\" or \".tsv\"; else CSV. For --model gpt and encoder: tokens from .bin, JSONL from .jsonl and .ndjson, else a text.", NULL},
    {"tokenizer", STRING, TRAINING, "bytes", NULL, "NAME", DATA,
     "How texts become tokens: bytes; chars, those that occur; gpt2:FOLDER with vocab.bpe and encoder.json; or a file tokenizer.json. It is kept in the model's folder.", "model=gpt|encoder"},
    {"tokenizer", STRING, BEL_VERB_TOKENS_ENCODE | BEL_VERB_TOKENS_DECODE, "bytes", NULL, "NAME", DATA,
     "The tokenizer: bytes; gpt2:FOLDER with vocab.bpe and encoder.json; or a file tokenizer.json.", NULL},
    {"input_format", STRING, TOKENIZING, "auto", "auto|text|jsonl", NULL, DATA,
     "How to read the files; auto: JSONL from .jsonl and .ndjson, else a text.", NULL},
    {"text_key", STRING, RUNNING | TOKENIZING, "text", NULL, "NAME", DATA,
     "member of a JSONL file's lines that has the text.", "input_format=jsonl"},
    {"wide_tokens", BOOL, RUNNING, "false", NULL, NULL, DATA,
     "tokens in files without a header are uint32; else uint16.", "input_format=tokens"},
    {"wide_tokens", BOOL, BEL_VERB_TOKENS_DECODE, "false", NULL, NULL, DATA,
     "Tokens in files without a header are uint32; else uint16.", NULL},
    {"vocabulary", INT, BEL_VERB_TOKENS_TRAIN, "8192", "[257, 16777216]", "tokens", DATA,
     "Tokens to learn: the bytes, merges and the end of a document.", NULL},
    {"out", STRING, TOKENIZING, "", NULL, "FILE", DATA,
     "File to write: the tokenizer, or the tokens; encode without it prints them as numbers.", NULL},
    {"prompt", STRING, BEL_VERB_GENERATE, "", NULL, "TEXT", DATA,
     "Text to continue; unset: a new document.", NULL},
    {"length", INT, BEL_VERB_GENERATE, "200", "[0, inf)", "tokens", DATA,
     "Maximum number of tokens to write; the end of a document ends them earlier.", NULL},
    {"temperature", DOUBLE, BEL_VERB_GENERATE, "0.8", "[0, 1000]", NULL, DATA,
     "Divisor of the logits: lower is less random; 0: always the likeliest token.", NULL},
    {"top_k", INT, BEL_VERB_GENERATE, "0", "[0, inf)", "tokens", DATA,
     "draw only among this number of likeliest tokens; 0: among all.", "temperature!=0"},
    {"top_p", DOUBLE, BEL_VERB_GENERATE, "1", "(0, 1]", NULL, DATA,
     "draw only among the likeliest tokens whose probabilities add up to this.", "temperature!=0"},
    {"label_column", STRING, RUNNING | BEL_VERB_COLUMNS, "", NULL, "NAME", DATA,
     "column of the label. Unset: the one called label, target, class or y, or the last one; for predict: no label.", "input_format=csv"},
    {"text_column", STRING, TRAINING, "", NULL, "NAME", DATA,
     "column of a CSV file with the texts to classify, of which tokens are made; unset: learn from files of texts, by hiding tokens.", "model=encoder"},
    {"label_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns of a table to learn together, each with two classes.", "input_format=csv"},
    {"id_columns", STRINGS, RUNNING, "", NULL, "NAME", DATA,
     "columns of a CSV file with texts or numbers that name something: they become ids. Stored in checkpoints.", "model=wide_deep"},
    {"id_list_columns", STRINGS, RUNNING, "", NULL, "NAME", DATA,
     "columns of a CSV file with any number of ids, separated by '|': \"3|17|4\". Stored in checkpoints.", "model=wide_deep"},
    {"id_list_most", INT, RUNNING, "16", "[1, 1048576]", "ids", DATA,
     "Maximum number of ids a value may have. Stored in checkpoints.", "id_list_columns"},
    {"id_list_weights", BOOL, RUNNING, "false", NULL, NULL, DATA,
     "Ids of --id_list_columns may have weights: \"3:0.5|17\". Stored in checkpoints.", "id_list_columns"},
    {"length_column", STRING, RUNNING, "", NULL, "NAME", DATA,
     "column of a CSV file with the number of a sequence's steps that count; unset: all do. Stored in checkpoints.", "model=gru|lstm"},
    {"columns", STRING, TRAINING, "auto", NULL, "FILE", DATA,
     "Description of a CSV file's columns (belfry columns). auto: inferred, unless flags such as --feature_scale or "
     "--class_count are given; none: all are numbers. Inferred tables have other defaults of the model, batches and "
     "passes (docs/columns.md). Stored in checkpoints.", "input_format=csv"},
    {"categorical", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns, or patterns of them, to read as categories, whatever is in them.", "input_format=csv"},
    {"numeric", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns of numbers; any other text in them is an error.", "input_format=csv"},
    {"log_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns of numbers to transform to ln (1 + |v|) with the sign of v.", "input_format=csv"},
    {"ignore", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns to leave out.", "input_format=csv"},
    {"key_columns", STRINGS, DESCRIBING, "", NULL, "NAME", DATA,
     "columns that name a row; predictions repeat them.", "input_format=csv"},
    {"weight_column", STRING, DESCRIBING, "", NULL, "NAME", DATA,
     "column with the weight of each row.", "input_format=csv"},
    {"missing", STRINGS, DESCRIBING, "", NULL, "TEXT", DATA,
     "texts that mean a missing value, besides an empty one; unset: NA, N/A, n/a, #N/A, <NA>, nan, NaN, null, NULL, "
     "None, ? and a point.",
     "input_format=csv"},
    {"missing", STRINGS, READING, "", NULL, "TEXT", DATA,
     "more texts that mean a missing value in these files, besides those of the training.",
     "input_format=csv"},
    {"delimiter", STRING, DESCRIBING, "", NULL, "CHARACTER", DATA,
     "character between fields, or tab; unset: the first line's most frequent of comma, semicolon, tab and bar.",
     "input_format=csv"},
    {"decimal", STRING, DESCRIBING, "", ".|,", "CHARACTER", DATA,
     "decimal point or comma of numbers; unset: a comma where the columns show one and it is no delimiter.",
     "input_format=csv"},
    {"path_column", STRING, RUNNING, "path", NULL, "NAME", DATA,
     "column of a CSV file that names a file, for packages that make features of files.", "package"},
    {"header", BOOL, RUNNING | BEL_VERB_COLUMNS, "true", NULL, NULL, DATA,
     "the files begin with a line of column names; with --no_header columns are named 0, 1 …",
     "input_format=csv"},
    {"feature_scale", DOUBLE, RUNNING, "1", NULL, NULL, DATA,
     "Factor of every number of the features. Stored in checkpoints.", NULL},
    {"train_batch_size", INT, TRAINING, "128", "[1, 2147483647]", "examples", DATA,
     "Batch size of one tower; a step takes a batch per tower.", NULL},
    {"eval_batch_size", INT, EVALUATING | BEL_VERB_CROSS_VALIDATE, "256", "[1, 2147483647]", "examples", DATA,
     "Batch size of evaluation, prediction; changes the speed, and results only by rounding.", EVALUATED},
    {"shuffle_buffer", INT, TRAINING, "0", "[0, inf)", "examples", DATA,
     "Examples in each window that is shuffled; 0: all examples; 1: no shuffling.", NULL},
    {"num_epochs", INT, TRAINING, "0", "[0, 1000000000]", "passes", DATA,
     "Passes over the training data; 0: until --train_steps, or one when that is 0 too.", NULL},
    {"skip_bad_records", INT, TRAINING | BEL_VERB_EVALUATE, "0", "[0, inf)", "records", DATA,
     "Maximum number of unreadable records to skip; the log names them; one more is an error.", NULL},
    {"check_input", BOOL, TRAINING | BEL_VERB_EVALUATE, "true", NULL, NULL, DATA,
     "check every cell of a table beforehand; with --no_check_input a bad cell ends the run when it is read.",
     "input_format=csv"},
    {"prefetch", INT, RUNNING, "0", "[0, 64]", "batches", DATA,
     "Batches kept ready. 0: 4, and more if they keep running out, up to 64 and 256 MiB a tower.", NULL},
    {"input_threads", INT, RUNNING, "0", "[0, 64]", "threads", DATA,
     "Threads that make a tower's batches. 0: 1, and on a GPU up to 4 where CSV or IDX is read as it is.", NULL},

    {"model", STRING, RUNNING, "dnn", "linear|dnn|cnn|resnet|wide_deep|gru|lstm|gpt|encoder|*.onnx", NULL, MODEL,
     "The model, or the file of another tool's model (docs/models.md); evaluate and predict read it from the "
     "checkpoint by default.", NULL},
    {"freeze", STRINGS, TRAINING, "", NULL, "PATTERN", MODEL,
     "*.onnx: variables that are not trained, by their names in the file.", "model=onnx"},
    {"train", STRINGS, TRAINING, "", NULL, "PATTERN", MODEL,
     "*.onnx: constants to train although their use does not make them weights.", "model=onnx"},
    {"package", STRING, RUNNING | EXPORT | SERVE, "", NULL, "FILE", MODEL,
     "A shared object with your own model (docs/models.md), instead of --model.", NULL},
    {"package_path", STRING, BUILDING | TYPED, "", NULL, "FOLDER", MODEL,
     "A package's sources, instead of --package: they are built, and kept in the model's folder by their digest "
     "(docs/models.md).", NULL},
    {"module_name", STRING, BUILDING | TYPED, "", NULL, "PACKAGE.NAME", MODEL,
     "Module of --package_path; without that, PACKAGE is the folder.", NULL},
    {"class_count", INT, RUNNING, "10", "[0, 1048576]", "classes", MODEL,
     "Labels must be below it; *.onnx, unset: the output's; 0, packages only: any label.", NULL},
    {"objective", STRING, RUNNING | BEL_VERB_COLUMNS, "classification",
     "classification|binary|multi_label|regression|huber|quantile|poisson|tweedie", NULL, MODEL,
     "Kind of label: one of several classes, several labels, or a number. Unset: classification, multi_label or "
     "regression, by the label.", NULL},
    {"quantile", DOUBLE, RUNNING, "0.5", "(0, 1)", NULL, MODEL,
     "share of labels that should be below the prediction.", "objective=quantile"},
    {"huber_delta", DOUBLE, RUNNING, "1", "(0, inf)", "deviations", MODEL,
     "errors above it count linearly, others by their square.", "objective=huber"},
    {"tweedie_power", DOUBLE, RUNNING, "1.5", "(1, 2)", NULL, MODEL,
     "the variance grows with this power of the mean.", "objective=tweedie"},
    {"class_weights", STRING, TRAINING, "", NULL, "CLASS=WEIGHT,..", MODEL,
     "weights of classes in the training loss: balanced, as if all had equally many rows; or some by name, the others "
     "1; for files of numbers a number per class.", "objective=classification|binary"},
    {"positive_class", STRING, TRAINING, "", NULL, "CLASS", MODEL,
     "the class of two that precision and recall count; unset: a table's rarer class, else 1.",
     "objective=classification|binary"},
    {"threshold", DOUBLE, RUNNING, "0.5", "[0, 1]", NULL, MODEL,
     "with two classes, or several labels, the second class is predicted when its probability is above this.",
     "objective=classification|binary|multi_label"},
    {"wide_numbers", BOOL, RUNNING, "false", NULL, NULL, MODEL,
     "numbers also have separate weights, beside the hidden layers.", "model=wide_deep"},
    {"hidden_units", INTS, RUNNING, "512,512", "[1, 1048576]", "units", MODEL,
     "sizes of the hidden layers.", "model=dnn|wide_deep"},
    {"embedding_width", INT, RUNNING, "16", "[1, 4096]", "floats", MODEL,
     "width of an id's row.", "model=wide_deep|dnn|linear"},
    {"id_list_combiner", STRING, RUNNING, "mean", "sum|mean|sqrtn", NULL, MODEL,
     "How rows of a value of --id_list_columns combine: sum: weighted; mean: that over the weights' sum; sqrtn: over "
     "the root of the sum of their squares.", "id_list_columns"},
    {"filters", INTS, RUNNING, "32,64", "[1, 65536]", "channels", MODEL,
     "output channels of the convolutions, each before a pool.", "model=cnn"},
    {"image_shape", INTS, RUNNING, "", "[1, 65536]", "pixels", MODEL,
     "channels, height and width of an example; empty: one square channel.", "model=cnn|resnet"},
    {"window", INT, RUNNING, "5", "[1, 64]", "pixels", MODEL, "height and width of a convolution's window.", "model=cnn"},
    {"dense_units", INTS, RUNNING, "512", "[1, 1048576]", "units", MODEL,
     "sizes of the dense layers after the convolutions.", "model=cnn"},
    {"blocks", INT, RUNNING, "3", "[1, 100]", "blocks", MODEL, "blocks of each of the three stages; the model has 6 * blocks + 2 layers.", "model=resnet"},
    {"width", INT, RUNNING, "16", "[1, 16384]", "channels", MODEL,
     "filters of the first stage; the others have 2 and 4 times as many.", "model=resnet"},
    {"batch_norm", STRING, RUNNING, "local", "local|merged|sync", NULL, MODEL,
     "statistics of batch normalization: local: per replica; merged: moving ones of all replicas' examples; sync: "
     "normalizes by all replicas, too.", "model=resnet"},
    {"recurrent_units", INTS, RUNNING, "128", "[1, 16384]", "units", MODEL,
     "sizes of the recurrent layers.", "model=gru|lstm"},
    {"sequence_width", INT, RUNNING, "1", "[1, 1048576]", "columns", MODEL,
     "columns of one time step; a record's columns are its steps, one after another.", "model=gru|lstm"},
    {"wide_optimizer", STRING, RUNNING, "same", "same|sgd|adagrad|adam|adamw|ftrl", NULL, MODEL,
     "optimizer of single ids' weights; same: --optimizer.", "model=wide_deep"},
    {"wide_learning_rate", DOUBLE, RUNNING, "0.1", "(0, 1000000]", NULL, MODEL,
     "its learning rate.", "wide_optimizer"},
    {"dropout", DOUBLE, RUNNING, "0", "[0, 1)", NULL, MODEL,
     "share of a hidden or dense layer's outputs left out in training; gpt, encoder: of each layer's.", "model=dnn|cnn|wide_deep|gpt|encoder"},
    {"preset", STRING, TRAINING, "nano", "nano|gpt2|gpt2-medium", NULL, MODEL,
     "sizes of the model: nano: 4 layers of 128 floats, contexts of 64 tokens; gpt2: 12 of 768, 1024; gpt2-medium: 24 of 1024, 1024.", "model=gpt"},
    {"layers", INT, TRAINING, "0", "[0, 1000]", "layers", MODEL, "blocks; 0: the preset's.", "model=gpt|encoder"},
    {"heads", INT, TRAINING, "0", "[0, 65536]", "heads", MODEL, "heads of attention; 0: the preset's.", "model=gpt|encoder"},
    {"kv_heads", INT, TRAINING, "0", "[0, 65536]", "heads", MODEL,
     "heads of keys and values, which groups of heads share; 0: --heads.", "model=gpt"},
    {"token_width", INT, TRAINING, "0", "[0, 1048576]", "floats", MODEL,
     "numbers that describe a token; 0: the preset's.", "model=gpt|encoder"},
    {"context", INT, TRAINING, "0", "[0, 16777216]", "tokens", MODEL,
     "tokens of an example, or the first ones of a text that count; 0: the preset's, or 64.", "model=gpt|encoder"},
    {"vocabulary", INT, TRAINING, "0", "[0, 16777216]", "tokens", MODEL,
     "tokens are below it; 0: the tokenizer's, and for the encoder one for hidden tokens.", "model=gpt|encoder"},
    {"positions", STRING, TRAINING, "learned", "learned|rotary", NULL, MODEL,
     "how a token knows its place.", "model=gpt|encoder"},
    {"norm", STRING, TRAINING, "layer", "layer|rms", NULL, MODEL,
     "normalization before each part of a block.", "model=gpt|encoder"},
    {"activation", STRING, TRAINING, "gelu", "gelu|swiglu", NULL, MODEL,
     "of a block's hidden layer.", "model=gpt|encoder"},
    {"bias", BOOL, TRAINING, "true", NULL, NULL, MODEL,
     "products and norms add a bias; --no_bias: none.", "model=gpt|encoder"},
    {"tied", BOOL, TRAINING, "true", NULL, NULL, MODEL,
     "the last layer has the tokens' table as its kernel.", "model=gpt"},
    {"l2", DOUBLE, RUNNING, "0", "[0, inf)", NULL, MODEL,
     "penalty: adds this times half the sum of the kernels' squares to the loss.",
     "model=linear|dnn|cnn|resnet|wide_deep|gru|lstm"},
    {"param", PAIRS, RUNNING | EXPORT, "", NULL, NULL, MODEL,
     "A parameter for a package's model function; repeat the flag for more.", "package"},

    BEL_OPTIMIZER_SETTINGS(OPTIMIZER_FLAG)

    {"distributed", BOOL, LOCAL, "false", NULL, NULL, CLUSTER,
     "A process for each role, on this machine; otherwise everything is one process.", NULL},
    {"worker_count", INT, PLACING, "2", "[0, 1024]", "workers", CLUSTER,
     "Workers; more than 0 unless the master trains.", NULL},
    {"worker_count", INT, BEL_VERB_JOBS_SCALE, "1", "[1, 1024]", "workers", CLUSTER,
     "Number of workers to continue with; without the flag it stays.", NULL},
    {"parameter_server_count", INT, PLACING, "1", "[0, 1024]", "servers", CLUSTER,
     "Parameter servers; 0: every worker holds a shard.", NULL},
    {"parameter_server_count", INT, BEL_VERB_JOBS_SCALE, "1", "[1, 1024]", "servers", CLUSTER,
     "Number of parameter servers to continue with; without the flag it stays.", NULL},
    {"evaluator_count", INT, PLACING, "0", "[0, 1]", "evaluators", CLUSTER,
     "1: a separate process evaluates the checkpoints; 0: the master does.", NULL},
    {"config", STRING, PLACING | STUDYING | BEL_VERB_PLAN, "", NULL, "FILE", CLUSTER,
     "cluster.yaml, which lists the job's processes; counts given as flags win.", NULL},
    {"tcp", BOOL, LOCAL, "false", NULL, NULL, CLUSTER,
     "Ports on the loopback address instead of unix sockets.", NULL},
    {"restarts", INT, STARTING, "10", "[0, 1000000]", NULL, CLUSTER,
     "Maximum restarts of each process that is killed; 0: its death ends the job.", NULL},
    {"min_workers", INT, STARTING, "0", "[0, 1024]", "workers", CLUSTER,
     "Workers that suffice to continue when others do not return; 0: all are needed.", NULL},
    {"parameter_server_copies", INT, STARTING, "0", "[0, 1]", NULL, CLUSTER,
     "1: each parameter server's state is also in another one's process, and no step is lost with one.", NULL},
    {"rank_count", INT, BEL_VERB_LOCAL_RANKS, "2", "[1, 64]", "ranks", CLUSTER,
     "Number of processes of the program; each receives its rank.", NULL},
    {"dry_run", BOOL, STARTING, "false", NULL, NULL, CLUSTER,
     "Print the plan of processes and what the engine would receive, and exit.", NULL},
    {"workers", STRINGS, BEL_VERB_PLAN, "1,2,4,8", NULL, "LIST", CLUSTER,
     "Numbers of workers to plan for, such as 1,2,8 or 1..1000 (doubled each time).", NULL},
    {"parameter_servers", INT, BEL_VERB_PLAN, "1", "[1, 1024]", "servers", CLUSTER,
     "Number of parameter servers; unset: that of --config, or 1.", NULL},
    {"bandwidth", STRING, BEL_VERB_PLAN, "10Gb", NULL, "RATE", CLUSTER,
     "Bits a second of a host's link, each way (Mb, Gb); if given, and --config names no hosts, each process has a host.", NULL},
    {"latency", STRING, BEL_VERB_PLAN, "50us", NULL, "TIME", CLUSTER,
     "Time of a byte from host to host (us, ms).", NULL},
    {"price", DOUBLE, BEL_VERB_PLAN, "0", "[0, 1e6]", "money", CLUSTER,
     "Price of a host for an hour, in any currency; 0: the plan has no cost of an epoch.", NULL},
    {"report", STRING, BEL_VERB_PLAN, "", NULL, "FILE", CLUSTER,
     "Page with the plan's curves, such as plan.html; unset: none.", NULL},
    {"calibrate", BOOL, BEL_VERB_PLAN, "false", NULL, NULL, CLUSTER,
     "Measure this machine and the model's steps anew, instead of using kept figures.", NULL},
    {"cluster", STRING, BEL_VERB_DOCTOR, "", NULL, "FILE", CLUSTER,
     "cluster.yaml: check this host, and by ssh the others, for a job of it.", NULL},
    {"hosts", STRINGS, CERTS, "", NULL, "HOST", CLUSTER,
     "Names and addresses at which the job's processes are reached; unset: this host's name. The loopback's are added.", NULL},
    {"days", INT, CERTS, "365", "[1, 36500]", "days", CLUSTER,
     "Days that host.pem is valid; a new authority is valid for ten years, or as long.", NULL},

    {"folds", INT, BEL_VERB_CROSS_VALIDATE, "5", "[2, 1000]", "folds", STUDY,
     "Parts of the data; a model trained on all others is evaluated on each.", NULL},
    {"folds", INT, BEL_VERB_TUNE, "0", "[0, 1000]", "folds", STUDY,
     "Folds of a trial's cross-validation; their mean is its score; 0: a trial is one training, evaluated on "
     "--eval_files or --eval_share.", NULL},
    {"try", PAIRS, BEL_VERB_TUNE, "", NULL, "NAME=VALUES", STUDY,
     "A flag to vary: LOW:HIGH, log:LOW:HIGH, int:LOW:HIGH or A|B|C; repeat it for more.", NULL},
    {"trials", INT, BEL_VERB_TUNE, "20", "[2, 1000]", "trials", STUDY,
     "Trials to run; the first has the flags as is.", NULL},
    {"tune_seed", INT, BEL_VERB_TUNE, "1", "[0, inf)", NULL, STUDY,
     "Seed of the draws; independent of --seed.", NULL},
    {"parallel", INT, STUDYING, "0", "[0, 1024]", "trainings", STUDY,
     "Maximum number at a time; 0: one per core, or one per num_gpus GPUs. They share cores and GPUs.", NULL},

    {"job_dir", STRING, PLACING, "", NULL, "FOLDER", JOB,
     "--model_dir of the training flags, unless they have one; then logs go here.", NULL},
    {"log_dir", STRING, LOCAL, "", NULL, "FOLDER", JOB,
     "Folder for the log of each process. Unset: logs in the model's folder.", NULL},
    {"engine", STRING, BEL_VERB_JOBS_SUBMIT, "local", NULL, "NAME", JOB,
     "Runs the job: local, processes on this machine; ssh or mpi, on the hosts of --config; slurm; kubernetes.", NULL},
    {"wait", BOOL, BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_RESUME, "false", NULL, NULL, JOB,
     "Wait for the job to end; return its exit code.", NULL},
    {"replace", BOOL, BEL_VERB_JOBS_SUBMIT, "false", NULL, NULL, JOB,
     "Reuse the name of a finished job; its record and logs are removed.", NULL},
    {"follow", BOOL, BEL_VERB_JOBS_LOGS, "true", NULL, NULL, JOB, "Continue until the job ends.", NULL},

    BEL_RUN_SETTINGS_RUN(RUN_FLAG)
    {"train_steps", INT, TRAINING, "0", "[0, inf)", "steps", RUN,
     "Train up to this step, counted from the first run; 0: until the data ends.", NULL},
    {"train_secs", DOUBLE, TRAINING, "0", "[0, 1000000000]", "s", RUN,
     "End regularly after this much training in this run; 0: no limit.", NULL},
    {"seed", INT, BEL_VERB_EXPERIMENT, "1", "[0, inf)", NULL, RUN, "The numbers depend on it.", NULL},
    {"seed", INT, BEL_VERB_GENERATE, "1", "[0, inf)", NULL, RUN, "The draws depend on it.", NULL},
    {"num_threads", INT, TOKENIZING, "0", "[0, 1024]", "threads", RUN,
     "Threads that read texts; 0: one per core. They change no result.", NULL},
    {"seed", INT, BEL_VERB_BENCH, "1", "[0, inf)", NULL, RUN, "The elements of inputs depend on it.", NULL},
    {"batch", INT, BEL_VERB_BENCH, "1", "[1, 1000000]", "examples", RUN,
     "The first open dimension of a model.", NULL},
    {"length", INT, BEL_VERB_BENCH, "32", "[0, 1000000]", NULL, RUN,
     "Other open dimensions of a model.", NULL},
    {"threads", INT, BEL_VERB_BENCH, "1", "[1, 1024]", "threads", RUN, "Threads that run a model.", NULL},
    {"seconds", DOUBLE, BEL_VERB_BENCH, "3", "[0.001, 86400]", "s", RUN,
     "Time to measure, for all models together.", NULL},
    {"against", STRING, BEL_VERB_BENCH, "", NULL, "MODEL", RUN,
     "Another model: rounds alternate, and the ratio is its median time over that of the first.", NULL},
    {"towers_of_workers", INTS, TRAINING, "", "[1, 256]", "towers", RUN,
     "Towers of each worker where they differ; one number per worker.", NULL},

    BEL_RUN_SETTINGS_CHECKPOINTS(RUN_FLAG)
    {"keep_best", STRING, ALONG, "", NULL, "METRIC", CHECKPOINTS,
     "Also keep the checkpoint whose evaluation has the best METRIC; --best reads it.", EVALUATED},
    {"warm_start", STRING, TRAINING, "", NULL, "FOLDER", CHECKPOINTS,
     "A new run begins with values of this checkpoint, or the newest in this model folder, or of a file *.safetensors, or "
     "of a folder of Hugging Face (model gpt).", NULL},
    {"warm_start_variables", STRINGS, TRAINING, "", NULL, "PATTERN", CHECKPOINTS,
     "Variables to read; else all.", "warm_start"},
    {"warm_start_names", PAIRS, TRAINING, "", NULL, "HERE=THERE", CHECKPOINTS,
     "A variable's name in the checkpoint; a * at the end of both stands for the rest of the name.",
     "warm_start"},
    {"checkpoint", STRING, SAVED, "", NULL, "FOLDER", CHECKPOINTS,
     "A checkpoint's folder; unset: the newest in --model_dir.", NULL},
    {"best", BOOL, SAVED, "false", NULL, NULL, CHECKPOINTS,
     "Read the checkpoint in --model_dir that --keep_best has kept, not the newest.", NULL},

    {"eval_every_steps", INT, ALONG, "0", "[0, inf)", "steps", EVALUATION,
     "Steps between evaluations; 0: at checkpoints.", EVALUATED},
    {"eval_steps", INT, ALONG | BEL_VERB_EVALUATE, "0", "[0, inf)", "batches",
     EVALUATION, "Batches of an evaluation; 0: all data.", EVALUATED},
    BEL_RUN_SETTINGS_EVALUATION(RUN_FLAG)
    {"early_stopping", STRING, ALONG, "0", NULL, "[METRIC:]N", EVALUATION,
     "End after N evaluations in a row without a better METRIC, by default --best_metric; 0: never.",
     EVALUATED},
    {"min_delta", DOUBLE, ALONG, "0", "[0, inf)", NULL, EVALUATION,
     "Improvement that an evaluation must exceed to be better.", "early_stopping"},
    {"best_metric", STRING, ALONG, "loss", NULL, "NAME", EVALUATION,
     "Metric of --early_stopping without METRIC and of --export best.", "early_stopping or export or best_goal"},
    {"best_goal", STRING, ALONG, "auto", "auto|min|max", NULL, EVALUATION,
     "Whether --best_metric, or a metric with an unknown goal, is better if smaller or larger; auto: by its name, "
     "such as max of accuracy and min of loss.", "early_stopping or export or keep_best"},
    {"export", STRINGS, ALONG, "", NULL, "KIND", EVALUATION,
     "Keep evaluated versions in export/KIND of the model's folder: best, latest, final.", EVALUATED},
    {"export_keep", INT, ALONG, "0", "[0, 1000000]", "versions", EVALUATION,
     "Versions kept of each; 0: 1 of best, 5 of others.", "export"},
    {"outputs", STRINGS, BEL_VERB_PREDICT, "", NULL, "NAME", OUTPUT,
     "Predictions to write, in this order: \"predictions\" and names that the model gives; else all.",
     NULL},
    {"keep_columns", STRINGS, BEL_VERB_PREDICT, "", NULL, "NAME", OUTPUT,
     "Columns of the files to write before each prediction, after those of --key_columns.", NULL},
    {"part", STRING, BEL_VERB_PREDICT, "", NULL, "K/N", OUTPUT,
     "Predict only part K, from 0 on, of N parts of the input; the parts in order are the whole. ranks: the processes "
     "of mpirun, srun, torchrun or local ranks share the input, and the first one prints all.", NULL},
    {"export_dir", STRING, EXPORT, "", NULL, "FOLDER", OUTPUT,
     "Folder to write to: a new one, or an earlier export, which is replaced. Unset: export/STEP in the model's folder.", NULL},
    {"format", STRING, EXPORT, "onnx", "onnx|huggingface", NULL, OUTPUT,
     "onnx: model.onnx, weights.safetensors and signature.json. huggingface: config.json and model.safetensors of a "
     "model gpt; --export_dir is a new folder, unset: export/STEP-huggingface in the model's folder.", NULL},
    {"training", BOOL, EXPORT, "false", NULL, NULL, OUTPUT,
     "Write a training step for a program (belfry/learner.h), instead of the model; --export_dir is a new folder, "
     "unset: export/STEP-training in the model's folder.", NULL},
    {"opset", INT, EXPORT, "17", "[13, 17]", NULL, OUTPUT, "Version of ONNX's operators in model.onnx.", "!training"},
    {"tables", STRING, EXPORT, "places", "places|inline", NULL, OUTPUT,
     "The model's inputs for ids of tables: their places among the keys, or the ids, which it looks up among up to "
     "65,536 keys.", "!training"},
    {"with_past", BOOL, EXPORT, "false", NULL, NULL, OUTPUT,
     "The ONNX model of a gpt takes keys and values of earlier tokens, and gives them with those of the new ones (docs/formats/export.md).", "!training"},
    {"external_data", BOOL, EXPORT, "false", NULL, NULL, OUTPUT,
     "Store values only in weights.safetensors, to which model.onnx points; always above 1 GiB.", "!training"},
    {"eval_start_delay_secs", DOUBLE, ALONG, "0", "[0, 1000000000]", "s", EVALUATION,
     "No evaluation at checkpoints before this much time.", EVALUATED},
    {"eval_throttle_secs", DOUBLE, ALONG, "0", "[0, 1000000000]", "s", EVALUATION,
     "Least time from one evaluation to the next.", EVALUATED},

    BEL_RUN_SETTINGS_OUTPUT(RUN_FLAG)
    {"audit", BOOL, BEL_VERB_INSPECT, "false", NULL, NULL, OUTPUT,
     "Check that every record was read exactly once in each epoch.", NULL},
    {"digest", BOOL, BEL_VERB_INSPECT, "false", NULL, NULL, OUTPUT,
     "Print only the digest, recomputed from the files.", NULL},
    {"rows", STRING, BEL_VERB_INSPECT, "", NULL, "TABLE", OUTPUT,
     "Print the rows of a table: a key a line, a tab, and the values with tabs between.", NULL},
    {"names", PAIRS, BEL_VERB_INSPECT, "", NULL, "COLUMN=FILE", OUTPUT,
     "Print the rows of these names, which are a name a line, cells of that column of ids; once for "
     "each file.",
     "rows"},
    {"cost", BOOL, BEL_VERB_GRAPH, "false", NULL, NULL, OUTPUT,
     "Run the step and print each instruction's time beside the expected time.", "!dump"},
    {"dump", BOOL, BEL_VERB_GRAPH, "false", NULL, NULL, OUTPUT,
     "Write the graph before and after it is rewritten, instead of the program.", NULL},
    {"passes", STRINGS, BEL_VERB_GRAPH, "all", NULL, "PASS", OUTPUT,
     "Passes over the graph: simplify, fold, same, concat, fuse, chunk, join; all; none.", NULL},
    {"json", BOOL, REPORTING & ~TELLING, "false", NULL, NULL, OUTPUT,
     "Results on stdout as JSON, one object on a line.", NULL},
    {"log_format", STRING, REPORTING, "text", "text|json", NULL, OUTPUT,
     "Form of the log on stderr.", NULL},
    {"log_level", STRING, REPORTING, "info", "error|warn|info|debug", NULL, OUTPUT,
     "Least important level that is logged.", NULL},
    {"log_time", BOOL, REPORTING, "false", NULL, NULL, OUTPUT,
     "Lines of the log begin with the time; as JSON they always have it.", "log_format=text"},
    {"quiet", BOOL, REPORTING, "false", NULL, NULL, OUTPUT, "Log warnings and errors only.", NULL},

    {"name", STRINGS, SERVE, "", NULL, "NAME", SERVER,
     "Names of the models, one for each path; by default the last part of the path.", NULL},
    {"port", INT, SERVE, "8501", "[-1, 65535]", NULL, SERVER, "Port for HTTP; 0: a free one, -1: no HTTP.", NULL},
    {"grpc_port", INT, SERVE, "-1", "[-1, 65535]", NULL, SERVER,
     "Port for gRPC; 0: a free one, -1: no gRPC.", NULL},
    {"address", STRING, SERVE, "127.0.0.1", NULL, "ADDRESS", SERVER,
     "Address to listen on; 0.0.0.0: all of this host.", NULL},
    {"threads", INT, SERVE, "0", "[0, 1024]", "threads", SERVER,
     "Requests computed at a time, each by one thread; 0: one per core.", NULL},
    {"queue", INT, SERVE, "64", "[0, 65536]", "requests", SERVER,
     "Requests that wait for a thread; more get the code 429.", NULL},
    {"max_batch", INT, SERVE, "1", "[1, 1024]", "examples", SERVER,
     "Requests of equal shapes run together, to the same bits, up to this number of examples; 1: separately.", NULL},
    {"batch_delay_us", INT, SERVE, "0", "[0, 10000000]", "us", SERVER,
     "Most time that a request waits for others to run with; 0: only requests that wait for a thread run together.", NULL},
    {"connections", INT, SERVE, "64", "[1, 4096]", "connections", SERVER,
     "Connections at a time; more get the code 503.", NULL},
    {"max_body", INT, SERVE, "16", "[1, 2047]", "MiB", SERVER, "Largest body of a request; a larger one gets 413.", NULL},
    {"max_examples", INT, SERVE, "65536", "[1, 2147483647]", "examples", SERVER,
     "Most examples of a request; more get the code 400.", NULL},
    {"timeout_secs", DOUBLE, SERVE, "30", "[0.1, 86400]", "s", SERVER,
     "Most time for the header of a request, for its body, and for its wait in the queue.", NULL},
    {"idle_secs", DOUBLE, SERVE, "60", "[0.1, 86400]", "s", SERVER,
     "Most time between two requests of a connection.", NULL},
    {"drain_secs", DOUBLE, SERVE, "30", "[0, 86400]", "s", SERVER,
     "Most time for requests in progress when the server stops.", NULL},
    {"keep_versions", INT, SERVE, "1", "[1, 1000]", "versions", SERVER,
     "Versions of a model that are loaded, the newest ones of its folder.", NULL},
    {"poll_secs", DOUBLE, SERVE, "1", "[0.01, 86400]", "s", SERVER,
     "Time between two looks for new versions; SIGHUP looks at once.", NULL},
    {"labels", STRING, SERVE, "", NULL, "FILE", SERVER,
     "Lines \"MODEL LABEL VERSION [SHARE%]\", VERSION a number or \"newest\"; requests name labels as versions. SIGHUP reads it again.", NULL},
    {"token_file", STRING, SERVE, "", NULL, "FILE", SERVER,
     "Requests must have the header \"Authorization: Bearer\" with the line of this file; SIGHUP reads it again.", NULL},
    {"tls_certificate", STRING, SERVE, "", NULL, "FILE", SERVER,
     "TLS for HTTP and gRPC: PEM file of the certificate, and of those that sign it.", NULL},
    {"tls_key", STRING, SERVE, "", NULL, "FILE", SERVER, "PEM file of the certificate's private key.", NULL},
    {"tls_ca", STRING, SERVE, "", NULL, "FILE", SERVER,
     "PEM file of an authority: clients must show a certificate that it signed.", NULL},
    {"access_log", STRING, SERVE, "", NULL, "FILE", SERVER,
     "Append a line of JSON for each request; SIGHUP opens the file again.", NULL},
    {"trace", STRING, SERVE, "", NULL, "FILE", SERVER,
     "Write the stages of the last requests for chrome://tracing or ui.perfetto.dev, at the end.", NULL},
    {"cpus", STRING, SERVE, "", NULL, "LIST", SERVER,
     "Processors to run on, such as 0-3,8; by default those that the process may use.", NULL},

    {"region", STRING, STARTING, "", NULL, "NAME", PLATFORM, "Ignored.", NULL},
    {"runtime_version", STRING, STARTING, "", NULL, "VERSION", PLATFORM, "Ignored.", NULL},
    {"python_version", STRING, STARTING, "", NULL, "VERSION", PLATFORM, "Ignored.", NULL},
    {"staging_bucket", STRING, STARTING, "", NULL, "BUCKET", PLATFORM, "Ignored.", NULL},
    {"packages", STRINGS, STARTING, "", NULL, "FILE", PLATFORM, "Ignored.", NULL},
    {"project", STRING, STARTING, "", NULL, "NAME", PLATFORM, "Ignored.", NULL},
    {"labels", STRINGS, BEL_VERB_JOBS_SUBMIT, "", NULL, "KEY=VALUE", PLATFORM, "Ignored.", NULL},
    {"async", BOOL, BEL_VERB_JOBS_SUBMIT, "true", NULL, NULL, PLATFORM, "Ignored: a job runs in background.", NULL},
    {"start_port", INT, LOCAL, "27182", "[1, 65535]", NULL, PLATFORM, "Ignored: free ports are used.", NULL},
    {"scale_tier", STRING, BEL_VERB_JOBS_SUBMIT, "", NULL, "TIER", PLATFORM,
     "Tier of the file in --config; if the file has none, or without a file, it decides which processes run.", NULL},
    {"stream_logs", BOOL, BEL_VERB_JOBS_SUBMIT | BEL_VERB_JOBS_RESUME, "false", NULL, NULL, PLATFORM,
     "Show the log of the job's processes until it ends.", NULL},

    {"config_file", STRING, RUNNING | TYPED, "", NULL, "FILE", SETTINGS,
     "YAML file with any of these flags, as \"name: value\"; the command line wins.", NULL},
    {"print_config", BOOL, RUNNING | TYPED, "false", NULL, NULL, SETTINGS,
     "Print all settings as YAML with their origins; exit.", NULL},
    {"enable_faults", BOOL, REPORTING, "false", NULL, NULL, SETTINGS,
     "Apply BELFRY_FAULT, also in the processes of a job (docs/operations.md); else it is refused.", NULL},
    {"h", BOOL, REPORTING | TYPED, "false", NULL, NULL, SETTINGS, "Print the flags that most users need; exit.", NULL},
    {"help", BOOL, REPORTING | TYPED, "false", NULL, NULL, SETTINGS,
     "Print all flags, and exit. With words after it: only flags with all of the words in their name or text.", NULL},
};
// clang-format on

enum { FLAG_COUNT = sizeof table / sizeof table[0] };

bel_options *bel_flags_create(uint64_t verb)
{
    bel_options *options = bel_options_create(table, FLAG_COUNT, verb);
    bel_options_know_words(options, bel_flag_words);
    bel_options_know_common(options, bel_common_flags);
    if ((verb & (STARTING | BEL_VERB_PLAN)) != 0)
        bel_options_say_elsewhere(options, "hint: put flags of the training after --");
    return options;
}

const char *bel_flags_in_group(const char *group, size_t index)
{
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (strcmp(table[i].group, group) == 0 && index-- == 0) return table[i].name;
    return NULL;
}
