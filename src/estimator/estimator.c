// Creation of an estimator, and checks of its settings. The limits of single settings are in
// run_settings.h; here are those that depend on others.
//
// In a cluster the job's task, not the program, determines the number of workers and shards, the
// towers of each worker, and the threads of a tower: bel_estimator_place replaces the settings by
// its numbers. Replicas follow from towers and from --replicas_to_aggregate above the number of
// workers; of all these numbers, only they change the bits. Texts of the settings are copied, as
// the caller may free them.
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/openblas.h"
#include "base/sized.h"
#include "base/str.h"
#include "base/thread.h"
#include "estimator/estimator_inner.h"
#include "estimator/run_flags.h"
#include "launch/folder/stored.h"
#include "launch/task/task.h"
#include "store/store.h"

enum { MAX_TOWERS = 256 };

// The number of replicas may scale either the rate or the gradient.
static bel_status *check_rates(const bel_run_config *c)
{
    if (c->elastic_rescale && c->average == BEL_AVERAGE_SUM) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "elastic_rescale raises the learning rate with the number of replicas, and "
                       "average sum the gradient: both together would count it twice");
    }
    if (c->scale_learning_rate == BEL_SCALE_LINEAR && c->average == BEL_AVERAGE_SUM) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "scale_learning_rate linear multiplies the learning rate by the number of "
                       "replicas, and average sum the gradient: both together would count it "
                       "twice; hint: scale_learning_rate always does it all the same");
    }
    if (c->scale_learning_rate != BEL_SCALE_NONE && c->mode != BEL_AGGREGATE_SYNC) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "scale_learning_rate needs mode sync: in mode %s an update is made of "
                       "replicas_to_aggregate workers' batches, however many workers there are; "
                       "hint: rate_scale multiplies the rate by a number of your own",
                       c->mode == BEL_AGGREGATE_ASYNC ? "async" : "bounded");
    }
    return NULL;
}

static bel_status *check_fan_in(const bel_run_config *c)
{
    const char *why = NULL;
    if (c->fan_in == 1) why = "a relay that adds one report has no work; hint: 2 or more";
    if (c->fan_in > 1 && c->lane == BEL_LANE_SHM)
        why = "shards read reports in place through shared memory; hint: lane grpc";
    if (why == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "fan_in is %lld: %s", (long long)c->fan_in, why);
}

// Checks the table of settings, then settings against each other.
static bel_status *check_settings(const bel_run_config *c)
{
    BEL_TRY(bel_run_config_check_rows(c));
    if (c->predict_parts < 0 || c->predict_part < 0 ||
        (c->predict_part > 0 && c->predict_part >= c->predict_parts)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "predict_part must be one of predict_parts, from 0 on, got %d of %d",
                       c->predict_part, c->predict_parts);
    }
    BEL_TRY(check_fan_in(c));
    BEL_TRY(check_rates(c));
    if (c->accumulate_steps > 1 &&
        (c->replicas_to_aggregate > 0 || c->mode != BEL_AGGREGATE_SYNC)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "accumulate_steps is %d: only in mode sync and without "
                       "replicas_to_aggregate, which says itself how many reports make an update",
                       c->accumulate_steps);
    }
    BEL_TRY(bel_run_config_check_cards(c));
    if (c->activation_memory > 0 && c->executor == BEL_EXECUTOR_ASYNC) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "activation_memory needs the synchronous executor: the asynchronous one runs "
            "operations in no fixed order");
    }
    for (int w = 0; c->towers_of != NULL && w < c->num_workers; w++) {
        if (c->towers_of[w] >= 1 && c->towers_of[w] <= MAX_TOWERS) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "worker %d must have from 1 to %d towers, got %d", w,
                       MAX_TOWERS, c->towers_of[w]);
    }
    if (c->table_disk != NULL && c->table_disk[0] != '\0' && c->table_memory == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "table_disk needs table_memory: the memory for a table's rows, beyond which "
                       "they are in %s",
                       c->table_disk);
    }
    if (c->table_expire_below > 0 && c->table_expire_after == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table_expire_below needs table_expire_after: small "
                                             "rows go after a quarter of its steps");
    }
    if (c->model_dir != NULL && c->model_dir[0] != '\0') return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "model_dir must name a folder, got %s",
                   c->model_dir == NULL ? "nothing, and " BEL_MODEL_DIR_VARIABLE " is not set"
                                        : "an empty text");
}

// sync means backups here: bel_counting_of turns it into "all" if all workers are wanted.
static bel_counting counting_of(const bel_run_config *config)
{
    static const bel_counting_kind kinds[] = {[BEL_AGGREGATE_SYNC] = BEL_COUNTING_BACKUPS,
                                              [BEL_AGGREGATE_ASYNC] = BEL_COUNTING_ASYNC,
                                              [BEL_AGGREGATE_BOUNDED] = BEL_COUNTING_BOUNDED};
    bel_counting counting =
        bel_counting_of(kinds[config->mode], config->replicas_to_aggregate,
                        config->accumulate_steps, config->num_workers, config->max_staleness);
    counting.local_steps = config->local_steps;
    return counting;
}

// Refuses settings that mean nothing, or something else, if replicas train between exchanges.
static bel_status *check_local(const bel_run_config *c, const bel_counting *counting)
{
    const char *why = NULL;
    if (!bel_counting_is_local(counting)) return NULL;
    if (c->mode != BEL_AGGREGATE_SYNC) {
        why = "in modes async and bounded replicas have no common exchange; hint: mode sync";
    } else if (bel_counting_has_ledger(counting)) {
        why = "with backup workers (replicas_to_aggregate below their number) a late replica's "
              "batches would be lost; hint: all workers";
    } else if (c->average == BEL_AVERAGE_SUM) {
        why = "parameters are averaged, and their sum over replicas means nothing; hint: average "
              "examples";
    } else if (c->accumulate_steps > 1) {
        why = "with accumulate_steps an update uses several batches, but a local step uses one; "
              "hint: replicas_to_aggregate for more replicas than towers";
    } else if (c->scale_learning_rate != BEL_SCALE_NONE) {
        why = "scale_learning_rate is for the batch of all replicas, but the batch of a local "
              "step is that of one replica; hint: give the learning rate of one replica";
    } else if (c->elastic_rescale) {
        why = "elastic_rescale raises the learning rate with the number of replicas, but the batch "
              "of a local step is that of one replica; hint: workers may come and go without it";
    } else if (c->update_device == BEL_DEVICE_CUDA) {
        why = "replicas are updated in the process's memory; hint: update_device cpu";
    }
    if (why == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "local_steps is %d: %s", c->local_steps, why);
}

// Refuses rounded exchanges where not all that is exchanged is a gradient's sum or an update.
static bel_status *check_exchange(const bel_run_config *c, const bel_counting *counting)
{
    const char *why = NULL;
    if (c->exchange_precision == BEL_EXCHANGE_F32) return NULL;
    if (bel_counting_has_ledger(counting)) {
        why = "with backup workers and in modes async and bounded a worker's next version need not "
              "follow the one that it has, so it gets values instead of differences; hint: mode "
              "sync with all workers";
    } else if (bel_counting_is_local(counting)) {
        why = "with local_steps workers report parameters and slots, which lose too much by it; "
              "hint: one of the two";
    } else if (c->update_device == BEL_DEVICE_CUDA) {
        why = "updates are rounded in the process's memory; hint: update_device cpu";
    }
    if (why == NULL) return NULL;
    bel_str word = {0};
    bel_run_flag_word("exchange_precision", (int)c->exchange_precision, &word);
    bel_status *refused =
        BEL_ERR(BEL_INVALID_ARGUMENT, "exchange_precision is %s: %s", word.text, why);
    bel_str_deinit(&word);
    return refused;
}

// Refuses settings that need all workers in every step, if a ledger decides who counts.
static bel_status *check_counted(const bel_run_config *c, const bel_counting *counting)
{
    if (c->audit_input) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "audit_input says which records every worker's steps have read, but here not "
            "every worker counts in each step");
    }
    if (c->check_replicas > 0) {
        static const char *const modes[] = {[BEL_COUNTING_BACKUPS] = "with backup workers",
                                            [BEL_COUNTING_ASYNC] = "in mode async",
                                            [BEL_COUNTING_BOUNDED] = "in mode bounded"};
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "check_replicas compares what all workers compute a step on, but %s they "
                       "compute on different versions",
                       modes[counting->kind]);
    }
    return NULL;
}

bel_status *bel_run_config_check(const bel_run_config *config)
{
    BEL_TRY(check_settings(config));
    bel_counting counting = counting_of(config);
    BEL_TRY(check_local(config, &counting));
    BEL_TRY(check_exchange(config, &counting));
    return bel_counting_has_ledger(&counting) ? check_counted(config, &counting) : NULL;
}

// Towers of a worker, if all have the same number.
static int towers_in(const bel_run_config *config)
{
    return config->num_gpus > 0 ? config->num_gpus : 1;
}

// Resolves towers of workers and threads of towers; `towers_of` may be NULL.
static void assign_towers(bel_estimator *estimator, const int *towers_of)
{
    const bel_run_config *config = &estimator->config;
    int count = config->num_workers, towers = 0;
    int *list = bel_xcalloc((size_t)count, sizeof(int));
    int *replicas = bel_xcalloc((size_t)count, sizeof(int));
    bel_counting counting = counting_of(config);
    estimator->replica_count = 0;
    for (int w = 0; w < count; w++) {
        list[w] = towers_of != NULL ? towers_of[w] : towers_in(config);
        replicas[w] = list[w] * bel_counting_turns(&counting, count, w);
        towers += list[w];
        estimator->replica_count += replicas[w];
    }
    bel_free(estimator->towers_of);
    bel_free(estimator->replicas_of);
    estimator->config.towers_of = estimator->towers_of = list;
    estimator->replicas_of = replicas;
    estimator->thread_count = config->num_threads;
    if (estimator->thread_count > 0) return;
    int share = bel_available_cores() / towers;
    estimator->thread_count = share > 0 ? share : 1;
}

// With a ledger all workers must have the same number of towers, as a lease taken back from one may
// go to any other.
bel_status *bel_estimator_counting(const bel_estimator *estimator, bel_counting *out_counting)
{
    const bel_run_config *c = &estimator->config;
    *out_counting = counting_of(c);
    BEL_TRY(check_local(c, out_counting));
    BEL_TRY(check_exchange(c, out_counting));
    if (!bel_counting_has_ledger(out_counting)) return NULL;
    BEL_TRY(check_counted(c, out_counting));
    int workers = out_counting->workers;
    if (workers > c->num_workers) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "replicas_to_aggregate is %d, but only %d worker%s can report before an "
                       "update",
                       workers, c->num_workers, c->num_workers == 1 ? "" : "s");
    }
    for (int w = 1; w < c->num_workers; w++) {
        if (estimator->towers_of[w] == estimator->towers_of[0]) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "worker %d has %d towers and worker 0 has %d: all must have the same number if not "
            "every worker counts in a step",
            w, estimator->towers_of[w], estimator->towers_of[0]);
    }
    return NULL;
}

int64_t bel_estimator_blocks_per_step(const bel_estimator *estimator, const bel_counting *counting)
{
    int64_t replicas =
        bel_counting_replicas(counting, estimator->replicas_of, estimator->config.num_workers);
    return replicas * counting->local_steps;
}

// Checks the limits again, with the cluster's numbers.
bel_status *bel_estimator_place(bel_estimator *estimator, int worker_count, const int *towers,
                                int shard_count, int thread_count)
{
    bel_run_config *config = &estimator->config;
    bool differs = worker_count != config->num_workers;
    if (towers == NULL && estimator->has_towers_of && differs) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "towers are given for %d workers, but the cluster has %d",
                       config->num_workers, worker_count);
    }
    config->num_workers = worker_count;
    config->parameter_server_count = shard_count;
    if (config->num_threads == 0) config->num_threads = thread_count;
    if (towers == NULL && estimator->has_towers_of) towers = estimator->towers_of;
    assign_towers(estimator, towers);
    return check_settings(config);
}

// Threads of a tower if the task leaves that open. Workers of one host share its cores, unless
// their launcher has given each separate cores.
static int share_of_host(const bel_estimator *estimator, const bel_task *task)
{
    int towers = towers_in(&estimator->config);
    int cores = bel_available_cores(), all = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int workers = task->local_size > 1 ? task->local_size : 1;
    bool bound = bel_linux_affinity_cores() < all;
    int share = (bound ? all : cores) / workers;
    if (share > cores) share = cores;
    return share > towers ? share / towers : 1;
}

// Applies the task's description of this process and of the job. Its limit for stalls comes from a
// cluster file, or from flags after it.
static bel_status *place_in_job(bel_estimator *estimator, const bel_task *task)
{
    bool is_master = task->role == BEL_ROLE_MASTER;
    bool trains = task->role == BEL_ROLE_WORKER || (is_master && task->master_trains);
    estimator->role = task->role;
    estimator->rank = trains ? task->index : -1;
    estimator->local_rank = task->local_rank;
    estimator->local_size = task->local_size;
    estimator->has_launcher = task->supervisor == 0;
    estimator->server_copies = task->copies;
    estimator->server_hosts = task->ps_hosts;
    if (task->stall_timeout_secs > 0) {
        estimator->config.stall_timeout = task->stall_timeout_secs;
    }
    int shards = task->ps_count > 0 ? task->ps_count : task->worker_count;
    int threads = task->thread_count > 0 ? task->thread_count : share_of_host(estimator, task);
    return bel_estimator_place(estimator, task->worker_count, task->towers, shards, threads);
}

// Compares names, as on another host neither folder may exist yet, then the existing folders.
static bool is_same_folder(const char *named, const char *own)
{
    struct stat x, y;
    char here[PATH_MAX];
    if (strcmp(named, own) == 0) return true;
    if (own[0] != '/' && getcwd(here, sizeof here) != NULL) {
        char *whole = bel_path_join(here, own);
        bool same = strcmp(named, whole) == 0;
        bel_free(whole);
        if (same) return true;
    }
    return stat(named, &x) == 0 && stat(own, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

// A supervisor locks the folder that it names, and looks there for scale requests. It could not
// observe training in another folder.
static bel_status *check_folder(const bel_estimator *estimator, const bel_task *task)
{
    const char *named = getenv(BEL_MODEL_DIR_VARIABLE), *own = estimator->config.model_dir;
    if (task->supervisor == 0 || named == NULL || is_same_folder(named, own)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "the job's folder is %s, but the program's model_dir is %s; hint: leave "
                   "model_dir unset, or start the job with --job_dir %s",
                   named, own, own);
}

// Logs counts of the program that have no effect in a job. Called before place_in_job.
static void say_counts(const bel_estimator *estimator, const bel_task *task)
{
    const bel_run_config *config = &estimator->config;
    const struct {
        const char *name;
        int wanted, there;
    } counts[] = {{"num_workers", config->num_workers, task->worker_count},
                  {"parameter_server_count", config->parameter_server_count,
                   task->ps_count > 0 ? task->ps_count : task->worker_count}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        bool unread = counts[i].wanted != 1 && counts[i].wanted != counts[i].there;
        if (task->role != BEL_ROLE_MASTER || task->incarnation > 0 || !unread) continue;
        bel_log_write(BEL_LOG_INFO, "%s %d has no effect here: the job has %d", counts[i].name,
                      counts[i].wanted, counts[i].there);
    }
}

static void warn_of_towers(const bel_estimator *estimator, const bel_task *task)
{
    int wanted = towers_in(&estimator->config);
    bool is_master = task->role == BEL_ROLE_MASTER;
    if (!is_master || wanted == 1 || task->towers == NULL || task->towers[0] == wanted) return;
    bel_log_write(BEL_LOG_WARN,
                  "%d towers of a worker are not what this job has: it gives worker 0 %d; hint: "
                  "devices of workers in cluster.yaml",
                  wanted, task->towers[0]);
}

// Frees a text that the estimator owns; such texts are const in the public structs.
static void free_text(const char *text)
{
    union {
        const char *read;
        char *owned;
    } pointer = {.read = text};
    bel_free(pointer.owned);
}

// A model folder in a store is worked in on this host. Members get the files that they need from
// the master.
static bel_status *enter_store(bel_estimator *estimator, bool reads)
{
    const char *named = estimator->config.model_dir;
    char *folder;
    if (!bel_store_is_url(named)) return NULL;
    BEL_TRY_CTX(bel_stored_folder(named, &folder), "model_dir");
    free_text(named);
    estimator->config.model_dir = folder;
    return reads ? bel_stored_pull(folder, NULL) : NULL;
}

static bel_status *take_task(bel_estimator *estimator)
{
    bel_task *task;
    BEL_TRY(bel_task_from_environment(estimator->config.chief_trains, &task));
    if (task == NULL) return enter_store(estimator, true);
    estimator->in_job = true;
    say_counts(estimator, task);
    bool reads = task->role == BEL_ROLE_MASTER || task->follows;
    bel_status *status = enter_store(estimator, reads);
    if (status == NULL) status = place_in_job(estimator, task);
    if (status == NULL) warn_of_towers(estimator, task);
    if (status == NULL) status = check_folder(estimator, task);
    bel_task_destroy(task);
    return status;
}

// Resolves defaults. The folder may follow from the environment.
static bel_status *estimator_resolve(const bel_run_config *config, bel_run_config *out_config)
{
    bel_run_config resolved;
    bel_run_config_init(&resolved, sizeof resolved);
    BEL_TRY(bel_sized_take_over(&resolved, sizeof resolved, config, "bel_run_config"));
    if (resolved.model_dir == NULL) resolved.model_dir = getenv(BEL_MODEL_DIR_VARIABLE);
    if (resolved.parameter_server_count == 0)
        resolved.parameter_server_count = resolved.num_workers;
    *out_config = resolved;
    return NULL;
}

bel_status *bel_run_config_blocks_per_step(const bel_run_config *config, int64_t *out_blocks)
{
    bel_estimator placed = {.has_towers_of = false};
    bel_task *task = NULL;
    bel_counting counting;
    BEL_TRY(estimator_resolve(config, &placed.config));
    BEL_TRY(check_settings(&placed.config));
    BEL_TRY(bel_task_from_environment(placed.config.chief_trains, &task));
    const int *towers_of = placed.config.towers_of;
    placed.has_towers_of = towers_of != NULL;
    assign_towers(&placed, towers_of);
    bel_status *status = task != NULL ? place_in_job(&placed, task) : NULL;
    if (status == NULL) status = bel_estimator_counting(&placed, &counting);
    if (status == NULL) *out_blocks = bel_estimator_blocks_per_step(&placed, &counting);
    bel_task_destroy(task);
    bel_free(placed.towers_of);
    bel_free(placed.replicas_of);
    return status;
}

bel_status *bel_eval_spec_take(const void *given, bel_eval_spec *out_spec)
{
    BEL_TRY(bel_sized_take(out_spec, sizeof *out_spec, given, "bel_eval_spec"));
    if (out_spec->input_fn == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "bel_eval_spec: input_fn is not set");
    return bel_sized_check(out_spec->out_result, "bel_result");
}

bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *given,
                                 const bel_param *params, int param_count,
                                 bel_estimator **out_estimator)
{
    bel_run_config resolved;
    BEL_TRY(estimator_resolve(given, &resolved));
    BEL_TRY(bel_isa_check());
    BEL_TRY(check_settings(&resolved));
    const bel_run_config *config = &resolved;
    if (config->products == BEL_PRODUCTS_OPENBLAS) BEL_TRY(bel_openblas_open());
    bel_estimator *estimator = bel_xcalloc(1, sizeof *estimator);
    estimator->model_fn = model_fn;
    estimator->config = resolved;
    bel_run_config_copy_texts(&estimator->config);
    if (config->job_file != NULL) estimator->config.job_file = bel_xstrdup(config->job_file);
    if (config->model_file != NULL) estimator->config.model_file = bel_xstrdup(config->model_file);
    estimator->has_towers_of = config->towers_of != NULL;
    assign_towers(estimator, config->towers_of);
    estimator->params = bel_xcalloc((size_t)param_count, sizeof *params);
    estimator->params_read = bel_xcalloc((size_t)param_count, sizeof *estimator->params_read);
    for (int i = 0; i < param_count; i++) {
        estimator->params[estimator->param_count++] =
            (bel_param){bel_xstrdup(params[i].name), bel_xstrdup(params[i].value)};
    }
    bel_status *status = take_task(estimator);
    if (status == NULL) {
        *out_estimator = estimator;
    } else {
        bel_estimator_destroy(estimator);
    }
    return status;
}

void bel_estimator_destroy(bel_estimator *estimator)
{
    if (estimator == NULL) return;
    for (int i = 0; i < estimator->param_count; i++) {
        free_text(estimator->params[i].name);
        free_text(estimator->params[i].value);
    }
    bel_free(estimator->params);
    bel_free(estimator->params_read);
    for (int i = 0; i < estimator->told_count; i++) {
        bel_free(estimator->told[i].name);
        bel_free(estimator->told[i].value);
    }
    bel_free(estimator->told);
    bel_free(estimator->towers_of);
    bel_free(estimator->replicas_of);
    bel_run_config_free_texts(&estimator->config);
    free_text(estimator->config.job_file);
    free_text(estimator->config.model_file);
    bel_free(estimator);
}

// --- Queries of the program's functions --------------------------------------------------------

const bel_run_config *bel_estimator_config(const bel_estimator *estimator)
{
    return &estimator->config;
}

bel_role bel_estimator_role(const bel_estimator *estimator)
{
    return estimator->role;
}

int bel_estimator_rank(const bel_estimator *estimator)
{
    return estimator->rank;
}

int bel_estimator_size(const bel_estimator *estimator)
{
    return estimator->config.num_workers;
}

int bel_estimator_local_rank(const bel_estimator *estimator)
{
    return estimator->local_rank;
}

int bel_estimator_local_size(const bel_estimator *estimator)
{
    return estimator->in_job ? estimator->local_size : estimator->config.num_workers;
}

bool bel_estimator_is_chief(const bel_estimator *estimator)
{
    return estimator->role == BEL_ROLE_MASTER;
}

int bel_estimator_replicas(const bel_estimator *estimator)
{
    return estimator->replica_count;
}
