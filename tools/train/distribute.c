// Makes words, a cluster and a plan from flags. The words are the command line of every process of
// the job, and a job's record stores them. All processes that start, supervise or scale a job make
// its plan from the same words and the same cluster file.
//
// Later words win: those after "--" come first, then flags for both the command and the processes
// that it starts. Flags that count parts of one process are refused unless they match the cluster,
// so that no flag is ignored.
#define _XOPEN_SOURCE 700 // realpath
#include "train/distribute.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/program.h"
#include "base/str.h"
#include "command/flags.h"
#include "command/stores.h"
#include "command/verbs.h"
#include "launch/task/task.h"
#include "package/package_build.h"
#include "setup/setup.h"

// --- Words --------------------------------------------------------------------------------------

void bel_words_add(bel_words *words, const char *text)
{
    words->items =
        bel_xgrow(words->items, &words->capacity, words->count + 2, sizeof *words->items);
    words->items[words->count++] = bel_xstrdup(text);
    words->items[words->count] = NULL;
}

static void add_flag(bel_words *words, const char *name, const char *value)
{
    char *text = bel_strf("--%s=%s", name, value);
    bel_words_add(words, text);
    bel_free(text);
}

// Flags for both the command and the processes that it starts. They come after the words that
// follow "--", so they win.
static const char *const shared_flags[] = {"json",         "log_format",      "log_level",
                                           "log_time",     "quiet",           "trace",
                                           "metrics_port", "metrics_address", "enable_faults"};
enum { SHARED_FLAG_COUNT = sizeof shared_flags / sizeof shared_flags[0] };

// Flags that also reach a user's program; the other shared flags concern only the command's log.
static bool reaches_programs(const char *flag)
{
    return strcmp(flag, "log_format") == 0 || strcmp(flag, "log_level") == 0 ||
           strcmp(flag, "log_time") == 0 || strcmp(flag, "quiet") == 0;
}

// Logs the given AI Platform flags that Belfry ignores, in one line.
static void say_passed_over(const bel_options *options)
{
    static const char *const flags[] = {"region",         "runtime_version", "python_version",
                                        "staging_bucket", "packages",        "project",
                                        "labels",         "async",           "start_port"};
    bel_str list = {0};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool here = bel_options_has(options, flags[i]) && bel_options_is_given(options, flags[i]);
        if (!here) continue;
        bel_str_printf(&list, "%s--%s %s", list.length > 0 ? ", " : "", flags[i],
                       bel_options_text(options, flags[i]));
    }
    if (list.length > 0) {
        bel_log_write(BEL_LOG_INFO, "without meaning here, and passed over: %s", list.text);
    }
    bel_str_deinit(&list);
}

// --- The user's program --------------------------------------------------------------------------

// Runs a module of a package as `python3 -m` does, with the package's parent folder first in the
// path of modules, wherever the process starts.
static const char python_code[] =
    "import os, runpy, sys; sys.path[0], module = sys.argv[1:3]; del sys.argv[1:3]; "
    "path = os.path.join(sys.path[0], *module.split('.')) + '.py'; "
    "os.path.exists(path) or sys.exit(f'belfry: {os.uname().nodename}: expected the module "
    "{module} in {path}, got no such file; hint: it must be at the same path on every host'); "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)";

// Module "trainer.main" without a folder is in the folder trainer. Free with bel_free.
static char *package_folder(const bel_options *options)
{
    const char *folder = bel_options_has(options, "package_path")
                             ? bel_options_string(options, "package_path")
                             : NULL;
    const char *module =
        bel_options_has(options, "module_name") ? bel_options_string(options, "module_name") : NULL;
    if (folder != NULL) return bel_xstrdup(folder);
    return module != NULL ? bel_xstrndup(module, strcspn(module, ".")) : NULL;
}

// Returns the parent folder of the Python package whose module --module_name names, FOLDER/NAME.py
// for "FOLDER.NAME"; NULL: it names none. Free with bel_free.
static char *python_parent(const bel_options *options)
{
    char path[PATH_MAX], *folder = package_folder(options);
    const char *module = folder != NULL ? bel_options_string(options, "module_name") : NULL;
    const char *dot = module != NULL ? strchr(module, '.') : NULL;
    bool there = dot != NULL && realpath(folder, path) != NULL;
    bel_free(folder);
    char *slash = there ? strrchr(path, '/') : NULL;
    if (slash == NULL || strlen(slash + 1) != (size_t)(dot - module) ||
        strncmp(slash + 1, module, (size_t)(dot - module)) != 0)
        return NULL;
    char *file = bel_strf("%s/%s.py", path, dot + 1);
    bool is_python = bel_file_exists(file);
    bel_free(file);
    return is_python ? bel_xstrndup(path, (size_t)(slash - path) + (slash == path)) : NULL;
}

static bel_status *take_program(bel_words *words, const bel_options *options,
                                const char *const *arguments, size_t count)
{
    for (int i = 0; i < SHARED_FLAG_COUNT; i++) {
        const char *flag = shared_flags[i];
        if (reaches_programs(flag) || !bel_options_is_given(options, flag)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s is for belfry's own training; the program %s has separate settings "
                       "(bel_run_config)",
                       flag, arguments[0]);
    }
    bel_status *status = bel_program_find(arguments[0], &words->program);
    if (status != NULL) {
        bel_status *error =
            BEL_ERR(BEL_INVALID_ARGUMENT,
                    "after --: expected training flags, which begin with --, or a program; %s",
                    bel_status_message(status));
        bel_status_destroy(status);
        return error;
    }
    for (size_t i = 0; i < count; i++)
        bel_words_add(words, arguments[i]);
    return NULL;
}

static bel_status *refuse_building(const bel_options *options, const char *program)
{
    static const char *const building[] = {"package_path", "module_name"};
    for (size_t i = 0; i < 2; i++) {
        bool here = bel_options_has(options, building[i]);
        if (!here || !bel_options_is_given(options, building[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s builds a package for belfry, and the program %s follows --; "
                       "hint: training flags begin with --",
                       building[i], program);
    }
    return NULL;
}

// The program is python3 with the module in the folder `parent`.
static bel_status *take_module(bel_words *words, const bel_options *options, const char *parent,
                               const char *const *arguments, size_t count)
{
    const char *const python[] = {"python3", "-c", python_code, parent,
                                  bel_options_string(options, "module_name")};
    BEL_TRY(take_program(words, options, python, sizeof python / sizeof python[0]));
    for (size_t i = 0; i < count; i++)
        bel_words_add(words, arguments[i]);
    return NULL;
}

// --- Training flags ------------------------------------------------------------------------------

// Finds a flag's value among the training flags after "--"; NULL: absent. Errors are reported
// later, when the words are parsed. Free with bel_free.
static char *among_words(const bel_words *words, const char *flag)
{
    enum { BEHIND_VERB = 2 };
    bel_options *training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    bel_status_ignore(
        bel_options_parse(training, (int)words->count - BEHIND_VERB, words->items + BEHIND_VERB));
    const char *text = bel_options_string(training, flag);
    char *copy = text != NULL ? bel_xstrdup(text) : NULL;
    bel_options_destroy(training);
    return copy;
}

bel_status *bel_package_from_flags(const bel_options *options, const char *model_dir,
                                   char **out_path)
{
    *out_path = NULL;
    char *folder = package_folder(options);
    if (folder == NULL) return NULL;
    bel_status *status = model_dir == NULL
                             ? BEL_ERR(BEL_INVALID_ARGUMENT,
                                       "--package_path %s needs a folder for the model, in "
                                       "which the package is kept: --job_dir or --model_dir",
                                       folder)
                             : bel_package_build(folder, bel_options_string(options, "module_name"),
                                                 model_dir, out_path);
    bel_free(folder);
    return status;
}

static bel_status *take_flags(bel_words *words, const bel_options *options,
                              const char *const *arguments, size_t count)
{
    bel_words_add(words, "belfry");
    bel_words_add(words, "train_and_evaluate");
    for (size_t i = 0; i < count; i++)
        bel_words_add(words, arguments[i]);
    for (int i = 0; i < SHARED_FLAG_COUNT; i++) {
        const char *name = shared_flags[i];
        if (bel_options_is_given(options, name)) {
            add_flag(words, name, bel_options_text(options, name));
        }
    }
    const char *job_dir = bel_options_string(options, "job_dir") != NULL
                              ? bel_options_text(options, "job_dir") // as given: it may be a URL
                              : NULL;
    char *model_dir = among_words(words, "model_dir"), *package = NULL, *path = NULL;
    if (model_dir == NULL && job_dir != NULL) {
        model_dir = bel_xstrdup(job_dir);
        add_flag(words, "model_dir", job_dir);
    } else if (job_dir != NULL && strcmp(model_dir, job_dir) != 0) {
        bel_log_write(BEL_LOG_INFO, "checkpoints go to --model_dir %s, not to --job_dir %s",
                      model_dir, job_dir);
    }
    bel_status *status = model_dir != NULL ? bel_store_path(model_dir, &path) : NULL;
    if (status == NULL) status = bel_package_from_flags(options, path, &package);
    if (status == NULL && package != NULL) add_flag(words, "package", package);
    bel_free(path);
    bel_free(package);
    bel_free(model_dir);
    return status;
}

bel_status *bel_words_from_flags(bel_words *words, const bel_options *options, size_t first)
{
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    say_passed_over(options);
    if (first > 0) arguments += first;
    count -= first;
    if (count > 0 && arguments[0][0] != '-') {
        BEL_TRY(refuse_building(options, arguments[0]));
        return take_program(words, options, arguments, count);
    }
    char *parent = python_parent(options);
    bel_status *status = parent != NULL ? take_module(words, options, parent, arguments, count)
                                        : take_flags(words, options, arguments, count);
    bel_free(parent);
    return status;
}

void bel_words_from_record(bel_words *words, const bel_job_record *record)
{
    bool is_program = record->program[0] != '\0';
    if (is_program) words->program = bel_xstrdup(record->program);
    bel_words_add(words, is_program ? record->program : "belfry");
    for (size_t i = 0; i < record->argument_count; i++)
        bel_words_add(words, record->arguments[i]);
}

void bel_words_deinit(bel_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        bel_free(words->items[i]);
    bel_free(words->items);
    bel_free(words->program);
    *words = (bel_words){0};
}

bel_status *bel_words_run(const bel_words *words, const bel_options *options, int *out_exit_code)
{
    if (words->program == NULL) {
        return bel_command_run((int)words->count - 1, words->items + 1, out_exit_code);
    }
    const char *job_dir = bel_options_string(options, "job_dir");
    if (job_dir != NULL) setenv(BEL_MODEL_DIR_VARIABLE, job_dir, 1);
    if (bel_log_get_format() == BEL_LOG_JSON) setenv("BELFRY_LOG_FORMAT", "json", 1);
    return bel_program_become(words->program, words->items);
}

// --- The cluster --------------------------------------------------------------------------------

static int given(const bel_options *options, const char *flag)
{
    bool there = bel_options_has(options, flag) && bel_options_is_given(options, flag);
    return there ? (int)bel_options_int(options, flag) : -1;
}

bel_cluster_changes bel_cluster_changes_from_flags(const bel_options *options)
{
    return (bel_cluster_changes){.worker_count = given(options, "worker_count"),
                                 .ps_count = given(options, "parameter_server_count"),
                                 .evaluator_count = given(options, "evaluator_count"),
                                 .restarts = given(options, "restarts"),
                                 .min_workers = given(options, "min_workers"),
                                 .copies = given(options, "parameter_server_copies")};
}

bel_status *bel_cluster_from_flags(const bel_options *options, bel_cluster **out_cluster)
{
    bel_cluster *cluster;
    const char *config = bel_options_string(options, "config");
    if (config != NULL) {
        BEL_TRY(bel_cluster_read(config, &cluster));
    } else {
        cluster = bel_cluster_create((int)bel_options_int(options, "worker_count"),
                                     (int)bel_options_int(options, "parameter_server_count"),
                                     (int)bel_options_int(options, "evaluator_count"));
    }
    const bel_cluster_changes changes = bel_cluster_changes_from_flags(options);
    bel_status *status = bel_cluster_change(cluster, &changes);
    if (status == NULL) {
        *out_cluster = cluster;
    } else {
        bel_cluster_destroy(cluster);
    }
    return status;
}

// --- Training flags -----------------------------------------------------------------------------

// A flag that counts parts of one process has no effect in a cluster. Counts in a file that a
// cluster has written match the cluster.
static bel_status *check_count(const bel_options *training, const char *flag, int there,
                               const char *what)
{
    if (!bel_options_is_given(training, flag) || bel_options_int(training, flag) == there)
        return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--%s %lld among the training flags: that is for one process, and the cluster "
                   "has %d %s; leave the flag out, or change the cluster",
                   flag, (long long)bel_options_int(training, flag), there, what);
}

bel_status *bel_distribution_check_elastic(const bel_options *training, const bel_plan *plan,
                                           const char *what)
{
    if (plan->cluster->roles[BEL_ROLE_PS].count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the workers hold the parameters, so they cannot become more or fewer; "
                       "give the cluster at least one parameter server",
                       what);
    }
    int64_t counted = bel_options_int(training, "replicas_to_aggregate");
    bool sync = strcmp(bel_options_string(training, "mode"), "sync") == 0;
    if (sync && (counted == 0 || counted >= plan->worker_count)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: workers can become more or fewer only where all count in every step, with "
                   "--mode sync and without backups",
                   what);
}

static bel_status *check_min_workers(const bel_options *training, const bel_plan *plan)
{
    if (plan->cluster->min_workers == 0) return NULL;
    return bel_distribution_check_elastic(training, plan, "min_workers");
}

static bel_status *check_training(const bel_options *training, const bel_plan *plan)
{
    // AI Platform's count of workers excludes the master, which also trains.
    int beside = plan->cluster->roles[BEL_ROLE_WORKER].count;
    if (!plan->cluster->from_ai_platform || bel_options_int(training, "num_workers") != beside) {
        BEL_TRY(check_count(training, "num_workers", plan->worker_count, "workers"));
    }
    BEL_TRY(check_count(training, "parameter_server_count", plan->shard_count, "shards"));
    if (bel_options_is_given(training, "towers_of_workers")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--towers_of_workers is for one process; in a cluster, workers have "
                       "--num_gpus towers each, or the devices of their machine");
    }
    if (bel_options_is_given(training, "chief_trains")) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--chief_trains is for processes of other launchers; in a cluster file it is "
            "master: {trains: true}");
    }
    BEL_TRY(check_min_workers(training, plan));
    return bel_setup_check_run(training, plan->worker_count);
}

static bel_counting_kind counting_kind(const bel_options *training)
{
    const char *mode = bel_options_string(training, "mode");
    if (strcmp(mode, "sync") == 0) return BEL_COUNTING_BACKUPS;
    return strcmp(mode, "async") == 0 ? BEL_COUNTING_ASYNC : BEL_COUNTING_BOUNDED;
}

// Checks the flags themselves, before anything of the cluster.
static bel_status *read_training(bel_distribution *d, const bel_words *words)
{
    enum { BEHIND_VERB = 2 };
    if (words->program != NULL) return NULL;
    BEL_TRY(bel_command_parse(d->training, (int)words->count - BEHIND_VERB,
                              words->items + BEHIND_VERB));
    d->asks = bel_command_wants_help(d->training) || bel_options_bool(d->training, "print_config");
    if (d->asks) return NULL;
    size_t extra_count;
    const char *const *extra = bel_options_arguments(d->training, &extra_count);
    if (extra_count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "unexpected argument \"%s\" among the training flags",
                       extra[0]);
    }
    static const char *const building[] = {"package_path", "module_name"};
    for (size_t i = 0; i < 2; i++) {
        if (bel_options_string(d->training, building[i]) == NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s belongs before --: the package is built once, and not by each "
                       "process",
                       building[i]);
    }
    return NULL;
}

// Makes the plan. A stall_timeout among the training flags overrides the cluster's.
static bel_status *make_plan(bel_distribution *d, const bel_cluster *cluster)
{
    const bel_options *training = d->training;
    BEL_TRY(bel_plan_create(cluster, (int)bel_options_int(training, "num_gpus"),
                            (int)bel_options_int(training, "num_threads"), &d->plan));
    BEL_TRY(check_training(training, d->plan));
    if (bel_options_is_given(training, "stall_timeout")) d->plan->stall_timeout_secs = 0;
    bel_plan_set_counting(d->plan, counting_kind(training),
                          (int)bel_options_int(training, "replicas_to_aggregate"),
                          (int)bel_options_int(training, "accumulate_steps"),
                          bel_options_int(training, "max_staleness"));
    return NULL;
}

static bel_status *distribute_prepare(bel_distribution *d, const bel_words *words,
                                      const char *job_dir, const bel_cluster *cluster)
{
    BEL_TRY(read_training(d, words));
    if (d->asks) return NULL;
    const char *named = bel_options_string(d->training, "model_dir");
    d->model_dir = named != NULL ? named : job_dir;
    if (d->model_dir == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--job_dir is needed%s: the folder for checkpoints",
                       words->program != NULL ? "" : ", or --model_dir among the training flags");
    }
    return make_plan(d, cluster);
}

bel_status *bel_distribution_init(bel_distribution *out_distribution, const bel_words *words,
                                  const char *job_dir, const bel_cluster *cluster)
{
    bel_distribution d = {.training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE)};
    bel_status *status = distribute_prepare(&d, words, job_dir, cluster);
    if (status == NULL) {
        *out_distribution = d;
    } else {
        bel_distribution_deinit(&d);
    }
    return status;
}

void bel_distribution_deinit(bel_distribution *distribution)
{
    bel_plan_destroy(distribution->plan);
    bel_options_destroy(distribution->training);
}

// --- Starts --------------------------------------------------------------------------------------

static bel_status *set_servers(bel_cluster *cluster, int servers)
{
    bel_cluster_changes changes = BEL_NO_CLUSTER_CHANGES;
    changes.ps_count = servers;
    return bel_cluster_change(cluster, &changes);
}

bel_status *bel_distribution_scale(const bel_words *words, const char *job_dir,
                                   bel_cluster *cluster, int servers)
{
    int before = cluster->roles[BEL_ROLE_PS].count;
    bel_distribution distribution;
    bel_status *status = set_servers(cluster, servers);
    if (status == NULL) status = bel_distribution_init(&distribution, words, job_dir, cluster);
    if (status == NULL) {
        bel_distribution_deinit(&distribution);
    } else {
        cluster->roles[BEL_ROLE_PS].count = before;
    }
    return status;
}

// Returns to the former number of servers, also in the folder: the next start must not find the
// request again.
static bel_status *refuse_servers(const bel_cluster *cluster, const char *model_dir,
                                  bel_status *why, bel_scale *scaled)
{
    scaled->servers = cluster->roles[BEL_ROLE_PS].count;
    bel_log_write(BEL_LOG_WARN, "the job continues with %d parameter servers: %s", scaled->servers,
                  bel_status_message(why));
    bel_status_ignore(why); // reported
    return bel_scale_write(model_dir, *scaled);
}

bel_status *bel_distribution_run(const bel_words *words, const char *job_dir, bel_cluster *cluster,
                                 bel_distribution_start *start, void *context)
{
    bel_scale scaled = {0};
    bel_status *status;
    bool again;
    do {
        bel_distribution distribution;
        BEL_TRY(bel_distribution_init(&distribution, words, job_dir, cluster));
        status = start(context, &distribution, &scaled);
        again = status == NULL && scaled.servers > 0;
        if (again) {
            bel_status *why = bel_distribution_scale(words, job_dir, cluster, scaled.servers);
            if (why != NULL) {
                status = refuse_servers(cluster, distribution.model_dir, why, &scaled);
            } else {
                bel_log_write(BEL_LOG_INFO, "the job starts again, with %d parameter server%s",
                              scaled.servers, scaled.servers == 1 ? "" : "s");
            }
        }
        bel_distribution_deinit(&distribution);
    } while (status == NULL && again);
    return status;
}
