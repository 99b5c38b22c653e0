// The belfry command: finds the verb, parses its flags, sets up the log, and turns the result into
// one line on stderr and an exit code (docs/command.md). Verbs return a status and never exit. Only
// main ends the process, after it has flushed stdout; a failed flush is an error like any other.
//
// The log is configured as soon as the flags are parsed, even if they are wrong, so that the error
// has the requested form. A verb without a summary serves other verbs and is not listed. Verbs that
// start others (bel_command_run) use the same path with separate flags.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/str.h"
#include "command/flags.h"
#include "command/results.h"
#include "command/signals.h"
#include "command/stores.h"
#include "command/verbs.h"
#include "launch/supervise/trials.h"
#include "package/package.h"
#include "package/package_build.h"
#include "setup/setup.h"
#include "train/distribute.h"

static const bel_verb verbs[] = {
    {"train_and_evaluate", BEL_VERB_TRAIN_AND_EVALUATE, "[flags]",
     "train, evaluating along the way and at the end", bel_verb_train, false},
    {"train", BEL_VERB_TRAIN, "[flags]", "train without evaluating", bel_verb_train, false},
    {"evaluate", BEL_VERB_EVALUATE, "[flags]", "loss and metrics of a checkpoint",
     bel_verb_evaluate, false},
    {"predict", BEL_VERB_PREDICT, "[flags]", "one line for each example", bel_verb_predict, false},
    {"export", BEL_VERB_EXPORT, "[flags]", "a checkpoint as an ONNX model", bel_verb_export, false},
    {"generate", BEL_VERB_GENERATE, "[flags]", "a text, continued by a model of language",
     bel_verb_generate, false},
    {"serve", BEL_VERB_SERVE, "EXPORT_DIR|MODEL_DIR|MODEL... [flags]",
     "trained models, answering requests", bel_verb_serve, true},
    {"tokens train", BEL_VERB_TOKENS_TRAIN, "FILE… --out tokenizer.json [flags]",
     "learn a tokenizer's merges from texts", bel_verb_tokens_train, true},
    {"tokens encode", BEL_VERB_TOKENS_ENCODE, "FILE… [flags]", "texts as tokens",
     bel_verb_tokens_encode, true},
    {"tokens decode", BEL_VERB_TOKENS_DECODE, "FILE… [flags]", "files of tokens as texts",
     bel_verb_tokens_decode, true},
    {"inspect", BEL_VERB_INSPECT, "FOLDER|MODEL [flags]",
     "contents and digest of a checkpoint; nodes of an ONNX model", bel_verb_inspect, true},
    {"bisect", BEL_VERB_BISECT, "FOLDER FOLDER [flags]",
     "first step and tensor at which two trainings differ", bel_verb_bisect, true},
    {"bench", BEL_VERB_BENCH, "MODEL [flags]", "speed of an ONNX model", bel_verb_bench, true},
    {"columns", BEL_VERB_COLUMNS, "FILE… [flags]", "description of the columns of CSV files",
     bel_verb_columns, true},
    {"cross_validate", BEL_VERB_CROSS_VALIDATE, "[flags]",
     "metrics of models trained on all but a part of the data", bel_verb_cross_validate, false},
    {"tune", BEL_VERB_TUNE, "--try NAME=VALUES [flags]", "search for flags that train better",
     bel_verb_tune, false},
    {"graph", BEL_VERB_GRAPH, "[training flags]",
     "instructions, memory and time of a training step", bel_verb_graph, false},
    {"plan", BEL_VERB_PLAN, "[flags] -- [training flags]",
     "expected speed, bytes and memory by number of workers", bel_verb_plan, true},
    {"local train", BEL_VERB_LOCAL_TRAIN, "[flags] -- [training flags]",
     "train_and_evaluate, in one or several processes", bel_verb_local_train, true},
    {"local ranks", BEL_VERB_LOCAL_RANKS, "[flags] -- PROGRAM [arguments]",
     "a program as processes that call each other", bel_verb_local_ranks, true},
    {"rank", BEL_VERB_RANK, "[flags] -- [training flags]",
     "a rank of mpirun or srun as a process of a cluster", bel_verb_rank, true},
    {"jobs submit training", BEL_VERB_JOBS_SUBMIT, "NAME [flags] -- [training flags]",
     "start a job in the background", bel_verb_jobs_submit, true},
    {"jobs list", BEL_VERB_JOBS_LIST, "[flags]", "all jobs, newest first", bel_verb_jobs_list,
     false},
    {"jobs describe", BEL_VERB_JOBS_DESCRIBE, "NAME [flags]", "everything about a job",
     bel_verb_jobs_describe, true},
    {"jobs cancel", BEL_VERB_JOBS_CANCEL, "NAME [flags]", "ask a job to save and end",
     bel_verb_jobs_cancel, true},
    {"jobs resume", BEL_VERB_JOBS_RESUME, "NAME [flags]", "continue a job that ended or was lost",
     bel_verb_jobs_resume, true},
    {"jobs remove", BEL_VERB_JOBS_REMOVE, "NAME [flags]",
     "remove an ended job's record and logs; the model stays", bel_verb_jobs_remove, true},
    {"jobs scale", BEL_VERB_JOBS_SCALE, "NAME [flags]",
     "continue a job with other numbers of workers and parameter servers", bel_verb_jobs_scale,
     true},
    {"jobs stream-logs", BEL_VERB_JOBS_LOGS, "NAME [flags]", "logs of a job's processes",
     bel_verb_jobs_stream_logs, true},
    {"jobs top", BEL_VERB_JOBS_TOP, "[NAME] [flags]",
     "progress of running jobs, or of one job's workers and shards", bel_verb_jobs_top, true},
    {"supervise", BEL_VERB_SUPERVISE, "NAME [flags]", NULL, bel_verb_supervise, true},
    {"carry", BEL_VERB_CARRY, "", NULL, bel_verb_carry, false},
    {"new", BEL_VERB_NEW, "NAME", "create a model package to start from", bel_verb_new, true},
    {"experiment batch_norm", BEL_VERB_EXPERIMENT, "[flags]",
     "batch normalization over 8 replicas beside that of one", bel_verb_experiment_batch_norm,
     false},
    {"doctor", BEL_VERB_DOCTOR, "[URL...] [flags]", "check whether this machine can train",
     bel_verb_doctor, true},
    {"certs", BEL_VERB_CERTS, "FOLDER [flags]", "certificates for TLS between a job's processes",
     bel_verb_certs, true},
    {"completion", BEL_VERB_SHELL, "bash|zsh|fish", "completion of this command, for a shell",
     bel_verb_completion, true},
    {"complete", BEL_VERB_SHELL, "-- WORDS", NULL, bel_verb_complete, true},
    {"manual", BEL_VERB_SHELL, "FOLDER", "write manual pages of all verbs into a folder",
     bel_verb_manual, true},
    {"version", BEL_VERB_VERSION, "[flags]", "versions of belfry and of its kernels",
     bel_verb_version, false},
};

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

// --- Finding a verb -----------------------------------------------------------------------------

// Returns the length of the first word.
static size_t word_length(const char *name)
{
    return strcspn(name, " ");
}

// Returns the number of words if the command line begins with the verb's whole name, else 0.
static int match_words(const bel_verb *v, int count, const char *const *words)
{
    const char *rest = v->name;
    for (int i = 0; i < count; i++) {
        size_t length = word_length(rest);
        if (strlen(words[i]) != length || memcmp(words[i], rest, length) != 0) return 0;
        if (rest[length] == '\0') return i + 1;
        rest += length + 1;
    }
    return 0;
}

const bel_verb *bel_verb_find(int count, const char *const *words, int *out_word_count)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        *out_word_count = match_words(&verbs[i], count, words);
        if (*out_word_count > 0) return &verbs[i];
    }
    return NULL;
}

const bel_verb *bel_verb_at(size_t index)
{
    return index < VERB_COUNT ? &verbs[index] : NULL;
}

// Returns true if the word is the first of verbs of several words, such as "jobs".
static bool is_group(const bel_verb *v, const char *word)
{
    size_t length = word_length(v->name);
    return v->name[length] == ' ' && strlen(word) == length && memcmp(word, v->name, length) == 0;
}

static bool any_group(const char *word)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (is_group(&verbs[i], word)) return true;
    return false;
}

// Error for a word such as "jobs" that is not followed by one of its verbs.
static bel_status *unknown_in_group(int count, char *const *words)
{
    const char *names[VERB_COUNT];
    size_t name_count = 0;
    bel_str list = {0};
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (!is_group(&verbs[i], words[0])) continue;
        const char *rest = verbs[i].name + word_length(verbs[i].name) + 1;
        bel_str_printf(&list, "%s%s", name_count > 0 ? ", " : "", rest);
        names[name_count++] = rest;
    }
    const char *typed = count > 1 ? words[1] : "nothing";
    int nearest = count > 1 ? bel_nearest_name(typed, names, name_count) : -1;
    bel_status *status =
        nearest >= 0 ? BEL_ERR(BEL_INVALID_ARGUMENT, "unknown verb %s %s; did you mean %s %s?",
                               words[0], typed, words[0], names[nearest])
                     : BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected one of: %s; got %s", words[0],
                               list.text, typed);
    bel_str_deinit(&list);
    return status;
}

static bel_status *unknown_verb(int count, char *const *words)
{
    if (any_group(words[0])) return unknown_in_group(count, words);
    char *names[VERB_COUNT];
    const char *choices[VERB_COUNT + 1];
    size_t choice_count = 0;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        names[i] = bel_xstrndup(verbs[i].name, word_length(verbs[i].name));
        if (verbs[i].summary != NULL) choices[choice_count++] = names[i];
    }
    choices[choice_count++] = "help";
    int nearest = bel_nearest_name(words[0], choices, choice_count);
    bel_status *status = nearest >= 0
                             ? BEL_ERR(BEL_INVALID_ARGUMENT, "unknown verb %s; did you mean %s?",
                                       words[0], choices[nearest])
                             : BEL_ERR(BEL_INVALID_ARGUMENT,
                                       "unknown verb %s; belfry help lists all verbs", words[0]);
    for (size_t i = 0; i < VERB_COUNT; i++)
        bel_free(names[i]);
    return status;
}

// --- Help ---------------------------------------------------------------------------------------

// Prints all verbs, or those of a group.
static bel_status *print_usage(const char *group)
{
    bel_str text = {0};
    if (group == NULL) {
        bel_str_puts(&text,
                     "belfry trains models with parameter servers, on one machine or many.\n\n");
    }
    bel_str_puts(&text, "usage: belfry VERB [flags]\n\n");
    for (size_t i = 0; i < VERB_COUNT; i++) {
        bool shown = verbs[i].summary != NULL && (group == NULL || is_group(&verbs[i], group));
        if (shown) bel_str_printf(&text, "  %-22s %s\n", verbs[i].name, verbs[i].summary);
    }
    bel_str_printf(&text, "  %-22s %s\n", "help [VERB]", "this text, or the flags of a verb");
    if (group == NULL) {
        bel_str_puts(&text, "\nExample:\n"
                            "  belfry train_and_evaluate --train_files train.csv --eval_files "
                            "eval.csv \\\n      --model_dir runs/first --train_steps 1000\n");
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static size_t count_flags(const bel_options *options)
{
    size_t count = 0;
    while (bel_options_at(options, count) != NULL)
        count++;
    return count;
}

// Chooses the flags that match the words after --help or -h.
static bel_options_choice choose_flags(const bel_options *options)
{
    enum { FEW = 20 }; // up to this number all flags are shown
    bool is_long = bel_options_bool(options, "help");
    size_t before = bel_options_arguments_before(options, is_long ? "help" : "h"), count;
    const char *const *arguments = bel_options_arguments(options, &count);
    size_t own = bel_options_own_argument_count(options);
    size_t words = own > before ? own - before : 0;
    return (bel_options_choice){.common = !is_long && words == 0 && count_flags(options) > FEW,
                                .words = words > 0 ? arguments + before : NULL,
                                .word_count = words};
}

static bel_status *print_help(const bel_verb *v, const bel_options *options)
{
    bel_options_choice choice = choose_flags(options);
    bel_str text = {0}, flags = {0};
    bel_str_printf(&text, "belfry %s %s: %s\n", v->name, v->arguments,
                   v->summary != NULL ? v->summary : "used by other verbs");
    enum { OF_ALL_VERBS = 2 }; // -h and --help
    size_t shown = bel_options_help(options, &choice, &flags);
    if (choice.common && shown <= OF_ALL_VERBS) { // the few that most users need are of trainings
        bel_str_deinit(&flags);
        flags = (bel_str){0};
        choice.common = false;
        shown = bel_options_help(options, &choice, &flags);
    }
    bel_str_puts(&text, shown > 0 ? flags.text : "");
    bel_str_deinit(&flags);
    if (shown == 0) {
        bel_str_deinit(&text);
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "no flag of belfry %s has \"%s\"%s in its name or text; --help lists all",
                       v->name, choice.words[0],
                       choice.word_count > 1 ? " and the other words" : "");
    }
    if (choice.common) {
        bel_str_printf(&text,
                       "\nThese are %zu of %zu flags. belfry %s --help shows all,\n"
                       "belfry %s --help WORD those about a word.\n",
                       shown, count_flags(options), v->name, v->name);
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *print_config(const bel_options *options)
{
    bel_str text = {0};
    bel_options_dump(options, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

// --- Running ------------------------------------------------------------------------------------

static void configure_log(const bel_options *options)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *name = bel_options_string(options, "log_level");
    bel_log_level level = BEL_LOG_INFO;
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) level = (bel_log_level)i;
    if (bel_options_bool(options, "quiet") && level > BEL_LOG_WARN) level = BEL_LOG_WARN;
    bool json = strcmp(bel_options_string(options, "log_format"), "json") == 0;
    bel_log_configure(level, json ? BEL_LOG_JSON : BEL_LOG_TEXT);
    bel_log_show_time(bel_options_bool(options, "log_time"));
}

// Finds the --package of the arguments or their --config_file before the full parse, because the
// package adds flags. NULL: no package, or the arguments are wrong, which the full parse reports.
// Free with bel_free.
static char *find_package(const bel_options *like, int count, char *const *arguments)
{
    bel_options *options = bel_options_create_like(like);
    bel_status_ignore(bel_options_parse(options, count, arguments));
    const char *file = bel_options_string(options, "config_file");
    if (file != NULL) bel_status_ignore(bel_options_read_yaml(options, file));
    const char *package = bel_options_string(options, "package");
    if (bel_options_is_given(options, "model")) package = NULL; // mutually exclusive
    char *path = package != NULL ? bel_xstrdup(package) : NULL;
    bel_options_destroy(options);
    return path;
}

static bel_status *add_package_flags(bel_options *options, int count, char *const *arguments)
{
    if (!bel_options_has(options, "package")) return NULL;
    char *package = find_package(options, count, arguments);
    if (package == NULL) return NULL;
    bel_status *status = bel_package_add_flags(package, options);
    bel_free(package);
    return status;
}

bool bel_command_wants_help(const bel_options *options)
{
    return bel_options_bool(options, "help") || bel_options_bool(options, "h");
}

bel_status *bel_command_parse(bel_options *options, int count, char *const *arguments)
{
    bel_status *unusable = add_package_flags(options, count, arguments);
    bel_status *status = bel_options_parse(options, count, arguments);
    if (unusable != NULL) {
        bel_status_ignore(status); // possibly about flags that the package would add
        status = unusable;
    }
    configure_log(options); // now also an error of the flags has the requested form
    if (status != NULL || bel_command_wants_help(options)) return status;
    const char *config_file = bel_options_string(options, "config_file");
    if (config_file != NULL) {
        BEL_TRY(bel_options_read_yaml(options, config_file));
        configure_log(options);
    }
    return bel_stores_from_flags(options);
}

// Finds the package of the model to read, unless a flag names the model.
static bel_status *find_kept(const bel_options *options, char **out_path)
{
    bool named = bel_options_is_given(options, "package") || bel_options_is_given(options, "model");
    char *folder = named ? NULL : bel_setup_folder(options);
    *out_path = NULL;
    if (folder == NULL) return NULL;
    bel_status *status = bel_package_kept(folder, out_path);
    bel_free(folder);
    return status;
}

// Makes a --package flag that the user has not typed, for the build of --package_path of a training
// verb, or for the package kept in a model's folder. *out_flag: NULL without a package; free with
// bel_free.
static bel_status *provide_package(const bel_options *like, int count, char *const *arguments,
                                   char **out_flag)
{
    *out_flag = NULL;
    bool reads = bel_options_has(like, "package") && bel_options_has(like, "checkpoint");
    bool builds = bel_options_has(like, "package") && bel_options_has(like, "package_path");
    if (!reads && !builds) return NULL;
    bel_options *options = bel_options_create_like(like);
    bel_status_ignore(bel_options_parse(options, count, arguments)); // the full parse reports it
    const char *file = bel_options_string(options, "config_file");
    if (file != NULL) bel_status_ignore(bel_options_read_yaml(options, file)); // the same
    char *package = NULL;
    bel_status *status = bel_stores_from_flags(options);
    const char *model_dir = bel_options_string(options, "model_dir");
    if (status == NULL)
        status = reads ? find_kept(options, &package)
                       : bel_package_from_flags(options, model_dir, &package);
    if (status == NULL && package != NULL) *out_flag = bel_strf("--package=%s", package);
    if (status == NULL) bel_free(package);
    bel_options_destroy(options);
    return status;
}

static bel_status *parse_with_package(bel_options *options, int count, char *const *arguments)
{
    char *flag;
    BEL_TRY(provide_package(options, count, arguments, &flag));
    if (flag == NULL) return bel_command_parse(options, count, arguments);
    char **all = bel_xcalloc((size_t)count + 1, sizeof *all);
    memcpy(all, arguments, (size_t)count * sizeof *all);
    all[count] = flag;
    bel_status *status = bel_command_parse(options, count + 1, all);
    bool reads = bel_options_has(options, "checkpoint");
    if (status == NULL && reads)
        bel_log_write(BEL_LOG_INFO, "the model's package is that of its training, %s",
                      bel_options_string(options, "package"));
    bel_free(all);
    bel_free(flag);
    return status;
}

static bel_status *run_with_options(const bel_verb *v, bel_options *options, int count,
                                    char *const *arguments, int *out_exit_code)
{
    BEL_TRY(parse_with_package(options, count, arguments));
    if (bel_command_wants_help(options)) return print_help(v, options);
    if (bel_options_bool(options, "print_config")) return print_config(options);
    if (bel_options_bool(options, "enable_faults")) bel_fault_enable();
    BEL_TRY(bel_fault_check());
    size_t argument_count;
    const char *const *extra = bel_options_arguments(options, &argument_count);
    if (argument_count > 0 && !v->takes_arguments) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "unexpected argument \"%s\"; flags begin with --",
                       extra[0]);
    }
    BEL_TRY(bel_stores_explain(options, v->run(options, out_exit_code)));
    return bel_stores_add(options);
}

bel_status *bel_command_run(int count, char *const *words, int *out_exit_code)
{
    int word_count;
    const bel_verb *v = bel_verb_find(count, (const char *const *)words, &word_count);
    if (v == NULL) return unknown_verb(count, words);
    bel_options *options = bel_flags_create(v->use);
    bel_status *status =
        run_with_options(v, options, count - word_count, words + word_count, out_exit_code);
    bel_options_destroy(options);
    return status;
}

static bool is_help_flag(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

// Runs "help", "help VERB" or "help VERB WORD": inserts the flag after the verb's words.
static bel_status *help(int count, char *const *words, int *out_exit_code)
{
    static char flag[] = "--help";
    if (count == 0) return print_usage(NULL);
    int word_count;
    const bel_verb *v = bel_verb_find(count, (const char *const *)words, &word_count);
    if (v == NULL && count == 1 && any_group(words[0])) return print_usage(words[0]);
    if (v == NULL) return unknown_verb(count, words);
    char **all = bel_xcalloc((size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i + (i >= word_count)] = words[i];
    all[word_count] = flag;
    bel_status *status = bel_command_run(count + 1, all, out_exit_code);
    bel_free(all);
    return status;
}

static bel_status *belfry_run(int count, char **words, int *out_exit_code)
{
    static char version[] = "version";
    if (count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a verb; belfry help lists all verbs");
    }
    if (strcmp(words[0], "help") == 0 || is_help_flag(words[0])) {
        return help(count - 1, words + 1, out_exit_code);
    }
    if (count == 2 && any_group(words[0]) && is_help_flag(words[1])) return print_usage(words[0]);
    if (strcmp(words[0], "--version") == 0) words[0] = version;
    BEL_TRY(bel_isa_check_wanted());
    return bel_command_run(count, words, out_exit_code);
}

// --- The end ------------------------------------------------------------------------------------

int main(int argument_count, char **arguments)
{
    int exit_code = 0;
    bel_signals_explain();
    bel_trials_follow_starter();
    bel_status *status = belfry_run(argument_count - 1, arguments + 1, &exit_code);
    if (status == NULL) status = bel_results_flush();
    bel_package_over();
    if (status != NULL) {
        bel_log_failure(status);
        if (exit_code == 0) exit_code = bel_status_exit_code(status);
        bel_status_destroy(status);
    }
    return exit_code;
}
