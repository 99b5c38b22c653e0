// Every training receives the flags as a file of settings, as the processes of a job do, so that
// none is lost. With --config each training is itself a job of several processes (verb local
// train).
#include "studies/study.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "command/flags.h"
#include "cuda/choose.h"
#include "launch/cluster/plan.h"
#include "launch/supervise/trials.h"
#include "setup/setup.h"
#include "store/store.h"

typedef struct run {
    bel_study_run told;
    const char *output, *log;
    char **words;           // with room for one more
    int word_count, own_at; // its separate flags begin at own_at
    int64_t log_bytes;      // bytes of earlier runs
} run;

struct bel_study {
    const bel_options *options;
    bel_arena *arena;
    const char *folder, *settings;
    int lock; // on the folder's study.lock
    char *program;
    run *runs;
    size_t capacity;
    int count;
    bel_trial *trials; // during execution
    bool (*ended)(void *context, int run);
    void *context;
};

// --- The trainings -------------------------------------------------------------------------------

static bel_status *check_flags(const bel_options *options)
{
    static const char *const single[] = {"metrics_port", "trace"};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        if (!bel_options_is_given(options, single[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is for one training, and here are several",
                       single[i]);
    }
    const char *folder = bel_options_string(options, "model_dir");
    if (folder == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--model_dir is needed: below it each training has its folder");
    }
    if (bel_store_is_url(bel_options_text(options, "model_dir"))) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--model_dir %s: a study keeps the folders of its trainings on this host; "
                       "expected a folder of it",
                       bel_options_text(options, "model_dir"));
    }
    size_t files;
    bel_options_list(options, "train_files", &files);
    if (files > 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--train_files is needed: the files to train on");
}

// Locks the folder. Trainings that have not begun read their settings from it: another study would
// change them.
static bel_status *lock_folder(const char *folder, int *out_lock)
{
    char *path = bel_path_join(folder, "study.lock");
    bel_status *status = bel_linux_lock(path, 0, out_lock);
    bel_free(path);
    if (bel_status_code(status) != BEL_FAILED_PRECONDITION) return status;
    bel_status_ignore(status); // replaced by the error below
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "another cross_validate or tune runs in %s; hint: another --model_dir", folder);
}

// --- Settings of a study, which its trainings read -----------------------------------------------

// Returns true for flags that change no model. Flags that set the number of trials may grow.
static bool is_neutral(const char *line)
{
    static const char names[] = "trials|parallel|num_threads|json|log_format|log_level|log_time|"
                                "quiet|enable_faults|model_dir|report|input_threads|prefetch|"
                                "device|gpus|virtual_devices|memory_limit|update_device|"
                                "allow_changes";
    char *name = bel_xstrndup(line, strcspn(line, ":"));
    bool neutral = bel_list_find(names, "|", name) >= 0;
    bel_free(name);
    return neutral;
}

// Reads a line of a dump without the origin of its value, from *at on; false after the last.
// Defaults are comments.
static bool next_given(const char **at, bel_str *line)
{
    while (**at != '\0') {
        size_t length = strcspn(*at, "\n");
        const char *text = *at;
        *at += length + (text[length] == '\n');
        line->length = 0;
        bel_str_append(line, text, length);
        for (char *found = strstr(line->text, " # "); found != NULL;) {
            char *next = strstr(found + 1, " # ");
            if (next == NULL) *found = '\0'; // the last one
            found = next;
        }
        if (line->text[0] != '#' && !is_neutral(line->text)) return true;
    }
    return false;
}

// Finds the first line of a dump that another one lacks, in *out_line; false: no such line.
static bool lacks_line(const char *dump, const char *other, bel_str *out_line)
{
    bel_str line = {0};
    bool found = true;
    while (found && next_given(&dump, out_line)) {
        found = false;
        for (const char *at = other; !found && next_given(&at, &line);)
            found = strcmp(line.text, out_line->text) == 0;
    }
    bel_str_deinit(&line);
    return !found;
}

static bel_status *study_compare(const char *folder, const char *before, const char *now)
{
    bel_str line = {0};
    bool lost = lacks_line(before, now, &line), added = !lost && lacks_line(now, before, &line);
    bel_status *status =
        lost || added
            ? BEL_ERR(BEL_INVALID_ARGUMENT,
                      "%s: its trainings began %s \"%s\", and that is not so now: models of both "
                      "would be mixed; hint: the flags of before, or another --model_dir",
                      folder, lost ? "with" : "without", line.text)
            : NULL;
    bel_str_deinit(&line);
    return status;
}

// Returns true if a training has begun below the folder: trial-003/ckpt-00000000, or a level
// deeper.
static bool has_begun(const char *folder, int depth)
{
    char **names = NULL;
    size_t count = 0;
    bool begun = false;
    bel_status_ignore(bel_dir_list(folder, &names, &count)); // then the list is empty
    for (size_t i = 0; i < count && !begun; i++) {
        char *path = bel_path_join(folder, names[i]);
        begun = strncmp(names[i], "ckpt-", 5) == 0 ||
                (depth > 0 && bel_dir_exists(path) && has_begun(path, depth - 1));
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return begun;
}

static bel_status *write_settings(const bel_options *options, const char *folder, const char *path)
{
    enum { DEPTH = 2 };
    bel_str text = {0};
    char *before = NULL;
    size_t size;
    bel_options_dump(options, &text);
    bel_status *status = NULL;
    if (bel_file_exists(path) && has_begun(folder, DEPTH)) {
        status = bel_file_read(path, &before, &size);
        if (status == NULL) status = study_compare(folder, before, text.text);
    }
    if (status == NULL) status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(before);
    bel_str_deinit(&text);
    return status;
}

bel_status *bel_study_create(const bel_options *options, bel_study **out_study)
{
    BEL_TRY(check_flags(options));
    const char *folder = bel_options_string(options, "model_dir");
    BEL_TRY(bel_dir_create(folder));
    int lock;
    BEL_TRY(lock_folder(folder, &lock));
    char *settings = bel_path_join(folder, "settings.yaml");
    bel_status *status = write_settings(options, folder, settings);
    if (status == NULL) {
        bel_study *study = bel_xcalloc(1, sizeof *study);
        study->options = options;
        study->arena = bel_arena_create();
        study->folder = folder;
        study->settings = bel_arena_strdup(study->arena, settings);
        study->lock = lock;
        study->program = bel_linux_program();
        *out_study = study;
    } else {
        bel_linux_unlock(lock);
    }
    bel_free(settings);
    return status;
}

// --- Adding trainings ----------------------------------------------------------------------------

void bel_study_destroy(bel_study *study)
{
    if (study == NULL) return;
    for (int i = 0; i < study->count; i++) {
        bel_json_destroy(study->runs[i].told.result);
        bel_free(study->runs[i].told.failure);
    }
    bel_linux_unlock(study->lock);
    bel_free(study->runs);
    bel_free(study->program);
    bel_arena_destroy(study->arena);
    bel_free(study);
}

static const char *path_in(const bel_study *study, const char *folder, const char *name)
{
    char *path = bel_path_join(folder, name);
    const char *copy = bel_arena_strdup(study->arena, path);
    bel_free(path);
    return copy;
}

static void add_word(const bel_study *study, run *r, const char *flag, const char *value)
{
    char *text = bel_strf("%s%s", flag, value);
    r->words[r->word_count++] = bel_arena_strdup(study->arena, text);
    bel_free(text);
}

void bel_study_add(bel_study *study, const char *name, const char *const *flags, int count)
{
    enum { OTHERS = 10 }; // words besides its separate flags, and the final NULL
    study->runs = bel_xgrow(study->runs, &study->capacity, (size_t)study->count + 1, sizeof(run));
    run *r = &study->runs[study->count++];
    *r = (run){.told.folder = path_in(study, study->folder, name)};
    r->output = path_in(study, r->told.folder, "result.json");
    r->log = path_in(study, r->told.folder, "log.txt");
    r->words = bel_arena_alloc(study->arena, ((size_t)count + OTHERS) * sizeof *r->words);
    const char *config = bel_options_string(study->options, "config");
    add_word(study, r, "belfry", "");
    add_word(study, r, config != NULL ? "local" : "train_and_evaluate", "");
    if (config != NULL) {
        add_word(study, r, "train", "");
        add_word(study, r, "--config=", config);
        add_word(study, r, "--", "");
    }
    add_word(study, r, "--config_file=", study->settings);
    add_word(study, r, "--model_dir=", r->told.folder);
    add_word(study, r, "--json", "");
    r->own_at = r->word_count;
    for (int i = 0; i < count; i++)
        add_word(study, r, flags[i], "");
}

// Returns the number of GPUs that a training by these flags uses, with a config as a job; 0: no
// GPU.
static int cards_of(const bel_options *options, const char *config)
{
    int count = bel_setup_card_count(options);
    if (config == NULL || count == 0) return count;
    bel_cluster *cluster = NULL;
    bel_plan *plan = NULL;
    bel_status *status = bel_cluster_read(config, &cluster);
    if (status == NULL)
        status = bel_plan_create(cluster, (int)bel_options_int(options, "num_gpus"), 0, &plan);
    count = status == NULL ? bel_plan_towers(plan, plan->worker_count) : 0;
    bel_status_ignore(status); // the first training reports it
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
    return count;
}

// Call it before share_cores adds words to the run.
static int cards_of_run(const bel_study *study, const run *r)
{
    bel_options *own = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    bel_status *status = bel_options_parse(own, r->word_count - r->own_at, r->words + r->own_at);
    if (status == NULL) status = bel_options_read_yaml(own, study->settings);
    int count = cards_of(status == NULL ? own : study->options,
                         bel_options_string(study->options, "config"));
    bel_status_ignore(status); // the training reports it
    bel_options_destroy(own);
    return count;
}

// Returns the default of --parallel: each training has at least a core, and separate GPUs.
static int study_fitting(const bel_study *study)
{
    int cores = bel_available_cores(), most = 0;
    for (int i = 0; i < study->count; i++) {
        int count = cards_of_run(study, &study->runs[i]);
        if (count > most) most = count;
    }
    int cards = most > 0 ? bel_cards_count(bel_options_string(study->options, "gpus")) : 0;
    if (cards == 0) return cores;
    int trainings = cards > most ? cards / most : 1;
    return trainings < cores ? trainings : cores;
}

static int side_by_side(const bel_study *study)
{
    int64_t wanted = bel_options_int(study->options, "parallel");
    int64_t most = wanted > 0 ? wanted : study_fitting(study);
    return (int)(most < study->count ? most : study->count);
}

// Divides the cores among parallel trainings; their bits do not depend on it. The plan of a cluster
// sets its processes' threads.
static void share_cores(const bel_study *study, int trainings)
{
    char text[32];
    int threads = bel_available_cores() / trainings;
    bool told = bel_options_is_given(study->options, "num_threads") ||
                bel_options_string(study->options, "config") != NULL;
    bel_snprintf(text, sizeof text, "%d", threads > 1 ? threads : 1);
    for (int i = 0; i < study->count && !told; i++) { // before its separate flags, which win
        run *r = &study->runs[i];
        add_word(study, r, "--num_threads=", text);
        char *word = r->words[r->word_count - 1];
        size_t own = (size_t)(r->word_count - 1 - r->own_at);
        memmove(r->words + r->own_at + 1, r->words + r->own_at, own * sizeof *r->words);
        r->words[r->own_at] = word;
    }
}

// --- Running -------------------------------------------------------------------------------------

// Returns the failure without the command's name, or the last line with content: at debug level a
// line with the place of the failure follows it.
static char *last_line(const char *text)
{
    static const char name[] = "belfry: ";
    const char *failure = NULL;
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at == text || at[-1] == '\n') failure = at + sizeof name - 1;
    if (failure != NULL) return bel_xstrndup(failure, strcspn(failure, "\n"));
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == '\n')
        end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    return bel_xstrndup(text + begin, end - begin);
}

static void note_failure(run *r, bel_linux_end end)
{
    char *text = NULL, *line = NULL;
    size_t size;
    bel_status_ignore(bel_file_read(r->log, &text, &size)); // then only the code is known
    bool said = text != NULL && (int64_t)size > r->log_bytes;
    if (said && end.signal == 0) line = last_line(text + r->log_bytes);
    if (line != NULL && line[0] != '\0') {
        r->told.failure = bel_strf("%s: %s", r->told.folder, line);
    } else if (end.signal != 0) {
        r->told.failure = bel_strf("%s: it was killed by signal %d (%s)", r->told.folder,
                                   end.signal, strsignal(end.signal));
    } else {
        r->told.failure =
            bel_strf("%s: it ended with exit code %d; see %s", r->told.folder, end.code, r->log);
    }
    bel_free(line);
    bel_free(text);
}

static bool take_end(void *context, int number)
{
    bel_study *study = context;
    run *r = &study->runs[number];
    char *text = NULL;
    size_t size;
    bel_status *status = NULL;
    const bel_linux_end end = study->trials[number].end;
    r->told.exit_code = end.code;
    r->told.killed = end.signal != 0 || end.code == 128 + SIGINT || end.code == 128 + SIGTERM;
    if (end.code != 0) {
        note_failure(r, end);
    } else {
        status = bel_file_read(r->output, &text, &size);
        if (status == NULL) status = bel_json_parse(text, size, r->output, &r->told.result);
        if (status != NULL) r->told.failure = bel_xstrdup(bel_status_message(status));
        bel_status_ignore(status); // reported
    }
    bel_free(text);
    return study->ended(study->context, number);
}

bel_status *bel_study_execute(bel_study *study, bool (*ended)(void *context, int run),
                              void *context, int *out_exit_code)
{
    int signal = 0;
    bel_status *status = NULL;
    const int trainings = side_by_side(study);
    share_cores(study, trainings);
    study->ended = ended;
    study->context = context;
    study->trials = bel_xcalloc((size_t)study->count, sizeof *study->trials);
    for (int i = 0; i < study->count && status == NULL; i++) {
        const run *r = &study->runs[i];
        study->trials[i] = (bel_trial){.arguments = r->words, .output = r->output, .log = r->log};
        struct stat info;
        study->runs[i].log_bytes = stat(r->log, &info) == 0 ? (int64_t)info.st_size : 0;
        status = bel_dir_create(r->told.folder);
    }
    bel_trials_config config = {.program = study->program,
                                .trials = study->trials,
                                .count = study->count,
                                .side_by_side = trainings,
                                .ended = take_end,
                                .context = study};
    if (status == NULL) status = bel_trials_run(&config, &signal);
    bel_free(study->trials);
    study->trials = NULL;
    if (status != NULL || signal == 0) return status;
    *out_exit_code = 128 + signal;
    return BEL_ERR(BEL_ABORTED,
                   "stopped by signal %d (%s); the same command continues where this one ended",
                   signal, strsignal(signal));
}

// --- Results -------------------------------------------------------------------------------------

const bel_study_run *bel_study_at(const bel_study *study, int number)
{
    return &study->runs[number].told;
}

double bel_study_metric(const bel_study_run *told, const char *name)
{
    double value;
    bool there = told->result != NULL && bel_json_f64(bel_json_root(told->result), name, &value);
    return there ? value : NAN;
}

typedef struct names {
    const char **items;
    size_t capacity;
    int count;
} names;

// Names that train_and_evaluate prints besides metrics (results.c).
static bel_status *take_name(void *context, const char *name, const bel_json_value *value)
{
    static const char others[] = "global_step|evaluation_step|batch_mean_loss|examples|"
                                 "train_seconds|examples_per_second|digest|interrupted";
    names *list = context;
    (void)value;
    if (bel_list_find(others, "|", name) >= 0) return NULL;
    list->items =
        bel_xgrow(list->items, &list->capacity, (size_t)list->count + 1, sizeof *list->items);
    list->items[list->count++] = name;
    return NULL;
}

const char **bel_study_metrics(const bel_study_run *told, int *out_count)
{
    names list = {0};
    if (told->result != NULL)
        bel_status_ignore(
            bel_json_each(bel_json_root(told->result), take_name, &list)); // list stays empty
    *out_count = list.count;
    return list.items;
}

bel_study_spread bel_study_spread_of(const bel_study *study, int first, int count,
                                     const char *metric)
{
    double sum = 0, squares = 0;
    bel_study_spread spread = {.count = 0};
    for (int i = first; i < first + count; i++) {
        double value = bel_study_metric(bel_study_at(study, i), metric);
        if (!isfinite(value)) continue;
        sum += value;
        spread.count++;
    }
    spread.mean = spread.count > 0 ? sum / spread.count : NAN;
    for (int i = first; i < first + count; i++) {
        double off = bel_study_metric(bel_study_at(study, i), metric) - spread.mean;
        if (isfinite(off)) squares += off * off;
    }
    spread.deviation = spread.count > 1    ? sqrt(squares / (spread.count - 1))
                       : spread.count == 1 ? 0
                                           : NAN;
    return spread;
}
