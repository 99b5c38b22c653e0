// The part before the first step: lock the folder, listen for members, build the model and its
// evaluations, load the newest checkpoint or make the first one, and find where training will end.
// Faults of the program's functions, the data or the settings show here, before training. After an
// error, run_job (train.c) undoes all that was made.
#include "master/job/job.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/requests.h"
#include "base/str.h"
#include "estimator/run_flags.h"
#include "launch/folder/folder_lock.h"
#include "master/backend/embedded.h"
#include "ps/layout/mirror_place.h"

// Finds the block after the last one to read. With drop_remainder only complete steps are read: of
// all replicas, or with a ledger of one worker.
int64_t bel_job_block_end(const bel_job *job)
{
    const bel_input_segment *segment = bel_job_newest_segment(&job->segments);
    bool whole = job->estimator->config.drop_remainder;
    int64_t blocks = bel_input_block_count(job->trainable.input, !whole);
    int64_t together = bel_counting_has_ledger(&job->trainable.counting)
                           ? job->estimator->replicas_of[0]
                           : segment->replica_count;
    int64_t left = blocks - segment->first_block;
    if (!whole || blocks == INT64_MAX || left <= 0) return blocks;
    return blocks - left % together;
}

// Finds the version at which training ends: max_steps, or the end of the input, whose last step may
// be short. With a ledger the end of the input shows only when it is reached, and this is the
// expected version: dropped reports, and blocks left out by going back, make it earlier.
bel_status *bel_job_find_last_step(bel_job *job)
{
    const bel_input_segment *segment = bel_job_newest_segment(&job->segments);
    int64_t end = bel_job_block_end(job), max_steps = job->steps.max;
    int64_t by_input = INT64_MAX;
    if (end != INT64_MAX) {
        int64_t left = end - segment->first_block, together = segment->replica_count;
        by_input = segment->first_step + (left > 0 ? (left - 1) / together + 1 : 0);
    }
    if (max_steps <= 0 && by_input == INT64_MAX && job->loop.replicator == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "training would never end: the input repeats forever and max_steps is not "
                       "set; hint: --train_steps or --num_epochs");
    }
    job->steps.last = max_steps > 0 && max_steps < by_input ? max_steps : by_input;
    if (job->loop.end >= 0 && job->loop.end < job->steps.last) job->steps.last = job->loop.end;
    int64_t stop = job->stopping.stop_at;
    if (stop >= 0 && stop < job->steps.last) { // an earlier end was requested
        job->steps.last = stop > job->steps.first ? stop : job->steps.first;
        return NULL;
    }
    if (job->steps.last > 0) return NULL;
    int64_t batch = bel_input_batch_size(job->trainable.input),
            records = bel_input_records(job->trainable.input);
    if (records == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "the training input has no example");
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "one whole step needs %lld examples (batch size %lld × %d %s), but the "
                   "training input has only %lld; hint: a smaller batch size, repeat, or no "
                   "drop_remainder",
                   (long long)(batch * segment->replica_count), (long long)batch,
                   (int)segment->replica_count,
                   bel_counting_is_local(&job->trainable.counting) ? "local batches" : "replicas",
                   (long long)records);
}

static void say_remainder(const bel_job *job)
{
    int64_t end = bel_job_block_end(job), records = bel_input_records(job->trainable.input);
    if (!job->estimator->config.drop_remainder || end == INT64_MAX) return;
    bel_log_write(BEL_LOG_INFO,
                  "drop_remainder: %lld of %lld examples do not fill a step and are left out",
                  (long long)(records - end * bel_input_batch_size(job->trainable.input)),
                  (long long)records);
}

// Warns of a single step, which is hardly ever intended.
static void say_single_step(const bel_job *job)
{
    int64_t batch = bel_input_batch_size(job->trainable.input) *
                    bel_job_newest_segment(&job->segments)->replica_count,
            records = bel_input_records(job->trainable.input);
    if (records > batch || job->steps.last - job->steps.first != 1) return;
    bel_log_write(BEL_LOG_WARN,
                  "a single step takes all %lld examples: it has room for %lld; hint: a smaller "
                  "batch size, or more passes over the data (--num_epochs)",
                  (long long)records, (long long)batch);
}

// Lists settings that apply only in other ways to run, so that one set of flags serves all of them.
// No part of this job reads them.
static void say_unread(const bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    const bel_task *task = job->task;
    bool evaluates = task != NULL && job->evals.count > 0;
    bool single = (job->backend->worker_count == 1 || job->backend->one_copy) &&
                  (config->num_gpus <= 1 || !bel_estimator_wants_cards(config));
    const bool has_tables = job->trainable.layout->table_count > 0;
    const struct {
        const char *name, *where;
        bool unread;
    } settings[] = {
        {"lane", "between processes", config->lane != BEL_LANE_AUTO && task == NULL},
        {"evaluate_on_workers", "where the master of a cluster evaluates",
         config->evaluate_on_workers && !evaluates},
        {"chief_trains", "for processes of other launchers",
         !config->chief_trains && (task == NULL || !task->foreign)},
        {"fan_in", "for more workers than that, over gRPC, beside parameter servers",
         config->fan_in > 0 && job->backend->relay_levels == job->backend->host_levels},
        {"check_replicas", "with several workers or GPUs that have copies of the parameters",
         config->check_replicas > 0 && single},
        {"full_checkpoint_every", "for tables, and dense parameters are always saved whole",
         config->full_checkpoint_every > 1 && !has_tables},
        {"table_memory", "for tables", config->table_memory > 0 && !has_tables},
        {"table_admit_after", "for tables", config->table_admit_after > 1 && !has_tables},
        {"table_expire_after", "for tables", config->table_expire_after > 0 && !has_tables},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (!settings[i].unread) continue;
        bel_log_write(BEL_LOG_WARN, "%s has no effect here: it counts only %s", settings[i].name,
                      settings[i].where);
    }
}

// Modes other than plain sync say which reports make an update.
static void describe_counting(const bel_counting *counting, bel_str *out_plan)
{
    const char *plural = counting->workers == 1 ? "" : "s";
    switch (counting->kind) {
    case BEL_COUNTING_BACKUPS:
        bel_str_printf(out_plan, "; the first %d report%s of a version make an update",
                       counting->workers, plural);
        break;
    case BEL_COUNTING_ASYNC:
        bel_str_printf(out_plan, "; mode async, %d report%s an update", counting->workers, plural);
        break;
    case BEL_COUNTING_BOUNDED:
        bel_str_printf(out_plan,
                       "; mode bounded, %d report%s an update, workers at most %lld reports ahead",
                       counting->workers, plural, (long long)counting->max_lead);
        break;
    case BEL_COUNTING_ALL:
    case BEL_COUNTING_KIND_COUNT: break;
    }
}

// Logs the meaning of a step with local steps.
static void say_local_steps(const bel_job *job)
{
    const bel_counting *counting = &job->trainable.counting;
    if (!bel_counting_is_local(counting)) return;
    bel_log_write(BEL_LOG_INFO,
                  "local_steps %d: a step is one exchange, after %d batches of each replica, and "
                  "takes the mean of their parameters and slots; steps of checkpoints, evaluations "
                  "and schedules are exchanges",
                  counting->local_steps, counting->local_steps);
}

// Logs the effect of rounded exchanges, which depends on the lanes.
static void say_exchange_precision(const bel_job *job)
{
    bel_exchange_precision precision = job->estimator->config.exchange_precision;
    if (precision == BEL_EXCHANGE_F32) return;
    bel_str word = {0};
    bel_run_flag_word("exchange_precision", (int)precision, &word);
    bel_log_write(BEL_LOG_INFO,
                  "exchange_precision %s: sums of gradients and updates are rounded; lanes over "
                  "gRPC carry %s of the bytes, and other lanes the same as before",
                  word.text, precision == BEL_EXCHANGE_INT8 ? "0.27" : "half");
    bel_str_deinit(&word);
}

// Logs how many parameter servers, or workers that might hold a shard, hold none.
static void say_unused_shards(const bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    int used = job->backend->shard_count, unused = config->parameter_server_count - used;
    char bytes[32];
    if (unused == 0) return;
    bel_log_write(
        BEL_LOG_INFO,
        "%d of %d shards hold%s the %s of parameters; %d %s not needed, as each would "
        "have less than --min_shard_bytes %lld",
        used, config->parameter_server_count, used == 1 ? "s" : "",
        bel_bytes_text((uint64_t)job->trainable.layout->parameters * sizeof(float), bytes), unused,
        unused == 1 ? "is" : "are", (long long)config->min_shard_bytes);
}

// Logs what is about to be trained, in two lines.
void bel_job_describe(const bel_job *job)
{
    const bel_estimator *estimator = job->estimator;
    const bel_run_config *config = &estimator->config;
    int tables = job->trainable.layout->table_count;
    char rows[64] = "";
    if (tables > 0)
        bel_snprintf(rows, sizeof rows, ", rows of %d table%s", tables, tables == 1 ? "" : "s");
    bel_log_write(BEL_LOG_INFO,
                  "%lld parameters in %d variables%s; %d worker%s, %d replica%s of batch %lld, %d "
                  "shard%s, %d thread%s each; %s",
                  (long long)job->trainable.layout->parameters,
                  bel_layout_model_variables(job->trainable.layout), rows,
                  job->backend->worker_count, job->backend->worker_count == 1 ? "" : "s",
                  job->backend->replica_count, job->backend->replica_count == 1 ? "" : "s",
                  (long long)bel_input_batch_size(job->trainable.input), job->backend->shard_count,
                  job->backend->shard_count == 1 ? "" : "s", estimator->thread_count,
                  estimator->thread_count == 1 ? "" : "s", config->model_dir);
    say_unused_shards(job);
    bel_estimator_say_cards(job->estimator);
    bel_str plan = {0};
    bel_str_printf(&plan, "steps %lld to ", (long long)job->steps.first);
    if (job->steps.last < INT64_MAX) {
        bel_str_printf(&plan, "%lld; checkpoints ", (long long)job->steps.last);
    } else {
        bel_str_printf(&plan, "where the %s ends; checkpoints ",
                       job->loop.follow != NULL ? "file" : "loop");
    }
    if (config->save_checkpoints_steps > 0) {
        bel_str_printf(&plan, "every %lld steps", (long long)config->save_checkpoints_steps);
    } else if (config->save_checkpoints_secs > 0) {
        bel_str_printf(&plan, "every %g s", config->save_checkpoints_secs);
    } else {
        bel_str_puts(&plan, "only");
    }
    bel_str_puts(&plan, " and at the end");
    for (int i = 0; i < job->evals.count; i++) {
        const bel_eval_spec *spec = job->evals.items[i].spec;
        bel_str_printf(&plan, "; %s ", job->evals.items[i].folder);
        if (spec->every_steps > 0) {
            bel_str_printf(&plan, "every %lld steps and at the end", (long long)spec->every_steps);
        } else {
            bel_str_puts(&plan, "at checkpoints and at the end");
        }
    }
    describe_counting(&job->trainable.counting, &plan);
    bel_log_write(BEL_LOG_INFO, "%s", plan.text);
    bel_str_deinit(&plan);
    say_local_steps(job);
    say_exchange_precision(job);
    say_remainder(job);
    say_single_step(job);
    say_unread(job);
}

// Makes the backend: threads of this process, or members of a cluster.
static bel_status *make_backend(bel_job *job)
{
    if (job->task == NULL) return bel_embedded_create(&job->trainable, &job->backend);
    const bel_remote_config config = {.members = job->cluster.members,
                                      .replaces = job->cluster.replaces,
                                      .task = job->task,
                                      .trainable = &job->trainable,
                                      .max_steps = job->spec->max_steps,
                                      .watchdog = job->cluster.watchdog,
                                      .eval_count = job->evaluator.count};
    return bel_remote_create(&config, &job->backend);
}

// Checks the settings of a job whose number of workers may change.
static bel_status *check_elastic(const bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    bool rescale = config->elastic_rescale, least = job->task != NULL && job->task->min_workers > 0;
    const char *name = rescale ? "elastic_rescale" : "min_workers";
    bel_counting counting;
    if (!rescale && !least) return NULL;
    if (job->task == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is for a cluster; in one process the workers stay",
                       name);
    }
    BEL_TRY(bel_estimator_counting(job->estimator, &counting));
    if (bel_counting_has_ledger(&counting)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s needs all workers to count in every step: mode sync, without backups",
                       name);
    }
    if (!rescale || config->replicas_to_aggregate == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "elastic_rescale and replicas_to_aggregate exclude each other: the one lets "
                   "replicas follow the workers, the other keeps their number");
}

// The cluster file is refused in this case, but a small model is on fewer shards than servers.
static void say_together(int shards, int hosts)
{
    int together = bel_mirror_together(shards, hosts, bel_mirror_distance(shards, hosts));
    if (together < 0) return;
    bel_log_write(
        BEL_LOG_WARN,
        "the model is on %d of the parameter servers: the copy of ps %d is on the host of "
        "ps %d, and steps are lost with that host; hint: --min_shard_bytes 0",
        shards, together, together);
}

// A mirror keeps what a supervisor's memory keeps, and continues as that does.
static bel_status *check_copies(const bel_job *job)
{
    const bel_trainable *t = &job->trainable;
    if (job->task == NULL || job->task->copies == 0) return NULL;
    const bel_shard_settings settings = bel_trainable_shard_settings(t);
    const char *why = bel_kept_why_not(t->layout, &settings);
    if (why == NULL) why = bel_trainable_why_no_hold(t);
    if (why == NULL && t->layout->shard_count < 2)
        why = "the model is small, and on one of the parameter servers; hint: --min_shard_bytes 0";
    if (why == NULL) {
        say_together(t->layout->shard_count, job->task->ps_hosts);
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "copies of parameter servers is %d, but a step could not be continued: %s",
                   job->task->copies, why);
}

// Refuses parts of a program that need evaluations by the master.
static bel_status *check_evaluator(const bel_job *job)
{
    if (job->evaluator.count == 0) return NULL;
    if (job->estimator->config.evaluate_on_workers) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "evaluate_on_workers: the job has an evaluator, and only it evaluates");
    }
    const bel_hooks *hooks = &job->trainable.hooks;
    for (int i = 0; i < hooks->count; i++) {
        if (hooks->items[i].after_evaluation == NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "hook %s: after_evaluation is called where the master evaluates, and this "
                       "job has an evaluator",
                       hooks->items[i].name);
    }
    return NULL;
}

// Locks the folder, for one run in it. A master may outlive its supervisor, or follow another
// master.
static bel_status *lock_folder(bel_job *job)
{
    const bel_task *task = job->task;
    const char *model_dir = job->estimator->config.model_dir;
    if (task == NULL) return bel_folder_lock(model_dir, &job->folder.lock);
    return bel_folder_lock_of_master(model_dir, task->lock,
                                     task->recovers ? task->join_timeout_secs : 0,
                                     bel_end_requested, &job->folder.lock);
}

// Ends the process: the master's thread hangs, perhaps in a write to a network disk, and nothing
// else could end the job. Files on disk are unchanged.
static void end_standstill(void *context, double secs)
{
    (void)context;
    bel_status *status =
        BEL_ERR(BEL_DEADLINE_EXCEEDED,
                "the master has hung for %.1f s; hint: does a disk or a file system that it writes "
                "to or reads from not answer?",
                secs);
    bel_log_failure(status);
    _exit(bel_status_exit_code(status));
}

// Starts the watchdog. It rests until the master waits for messages, and is fed in each wait.
static bel_status *start_watchdog(bel_job *job)
{
    enum { SPARE_SECS = 5 }; // stalled members are detected and named earlier
    if (job->task == NULL) return NULL;
    double limit = 1.5 * job->estimator->config.stall_timeout + SPARE_SECS;
    return bel_watchdog_start(limit, end_standstill, NULL, &job->cluster.watchdog);
}

// Warns of unread parameters: a misspelt one would silently have no effect.
static void warn_unread(const bel_job *job)
{
    const bel_estimator *estimator = job->estimator;
    for (int i = 0; i < estimator->param_count; i++) {
        if (atomic_load_explicit(&estimator->params_read[i], memory_order_relaxed)) continue;
        bel_log_write(BEL_LOG_WARN, "the model function does not read the parameter \"%s\"",
                      estimator->params[i].name);
    }
    for (int i = 0; i < estimator->told_count; i++) {
        const bel_told *told = &estimator->told[i];
        if (!told->expected || atomic_load_explicit(&told->read, memory_order_relaxed)) continue;
        bel_log_write(BEL_LOG_WARN, "the input function does not read --%s", told->name);
    }
}

// Records how to start the run again. If the folder refuses this file, it would refuse checkpoints
// too.
static bel_status *write_job_file(const bel_run_config *config)
{
    if (config->job_file == NULL) return NULL;
    char *path = bel_path_join(config->model_dir, "job.yaml");
    bel_status *status = bel_file_write_atomic(path, config->job_file, strlen(config->job_file));
    bel_free(path);
    return status;
}

// Copies the ONNX file for evaluate, predict and export, under a name derived from its contents. An
// existing copy has the same bytes. If the file changed since the model was read, it is refused, as
// it would be another model than the trained one.
static bel_status *keep_model_file(const bel_estimator *estimator)
{
    const bel_run_config *config = &estimator->config;
    const char *expected = bel_estimator_param(estimator, "onnx_digest", NULL);
    char digest[BEL_RESULT_TEXT], *bytes;
    size_t size;
    if (config->model_file == NULL) return NULL;
    BEL_TRY(bel_file_read(config->model_file, &bytes, &size));
    bel_hash128_text(bel_hash128_of(bytes, size, 0), digest);
    char *name = bel_strf("source-%s.onnx", digest);
    char *path = bel_path_join(config->model_dir, name);
    bel_status *status = NULL;
    if (expected != NULL && strcmp(expected, digest) != 0) {
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "%s was changed while the training began",
                         config->model_file);
    } else if (!bel_file_exists(path)) {
        status = bel_file_write_atomic(path, bytes, size);
    }
    bel_free(bytes);
    bel_free(name);
    bel_free(path);
    return status;
}

// Logs the settings that determine the bits, as a table in TensorBoard's texts.
static void log_settings(const bel_job *job)
{
    const bel_settings *settings = &job->trainable.settings;
    bel_str table = {0};
    bel_str_puts(&table, "| setting | value |\n|---|---|\n");
    for (int i = 0; i < settings->count; i++) {
        bel_str_printf(&table, "| %s | ", settings->names[i]);
        for (const char *c = settings->values[i]; *c != '\0'; c++) {
            if (*c == '|') bel_str_puts(&table, "\\");
            bel_str_append(&table, *c == '\n' ? " " : c, 1);
        }
        bel_str_puts(&table, " |\n");
    }
    bel_run_log_text(job->log, job->steps.first + 1, "settings", table.text);
    bel_str_deinit(&table);
}

// In this order: the folder is locked for this run before anything is written; members may call
// while the model is built.
bel_status *bel_job_prepare(bel_job *job, const bel_eval_spec *evals, int eval_count)
{
    const bel_run_config *config = &job->estimator->config;
    BEL_TRY(lock_folder(job));
    BEL_TRY(bel_job_check_damage(job));
    BEL_TRY(check_elastic(job));
    if (job->task != NULL) {
        BEL_TRY(bel_remote_listen(job->task, job->estimator, &job->cluster.members,
                                  &job->cluster.replaces));
    }
    BEL_TRY(bel_reporter_create(job->estimator, job->task, &job->reporter));
    BEL_TRY(bel_trainable_init(&job->trainable, job->estimator, job->spec));
    BEL_TRY(check_copies(job));
    if (bel_input_follow_secs(job->trainable.input) > 0) {
        bel_train_spec spec = *job->spec;
        job->loop.follow = bel_follow_create(&job->trainable);
        const bel_loop loop = bel_follow_loop(job->loop.follow);
        spec.loop = &loop; // copied
        job->loop.replicator = bel_replicator_create(&job->trainable, &spec);
    }
    if (job->spec->loop != NULL) {
        bel_hooks *hooks = &job->trainable.hooks;
        job->loop.replicator = bel_replicator_create(&job->trainable, job->spec);
        hooks->items[hooks->count] = bel_replicator_hook(job->loop.replicator);
        hooks->count += hooks->items[hooks->count].state_bytes > 0;
    }
    const bel_built *built = job->trainable.built;
    size_t functions = (size_t)built->function_count;
    job->optimizers = bel_xcalloc(functions, sizeof *job->optimizers);
    memcpy(job->optimizers, built->optimizers, functions * sizeof *job->optimizers);
    BEL_TRY(start_watchdog(job));
    BEL_TRY(make_backend(job));
    BEL_TRY(bel_job_build_evals(job, evals, eval_count));
    BEL_TRY(bel_job_check_stopping(job));
    BEL_TRY(bel_job_check_best(job));
    BEL_TRY(bel_job_take_exporters(job, evals));
    BEL_TRY(bel_job_begin_evaluator(job));
    BEL_TRY(check_evaluator(job));
    warn_unread(job);
    BEL_TRY(bel_job_resume(job));
    job->steps.max =
        job->spec->steps > 0 ? job->steps.first + job->spec->steps : job->spec->max_steps;
    BEL_TRY(bel_job_find_last_step(job));
    BEL_TRY(bel_run_log_open(config->model_dir, job->steps.first, &job->log));
    log_settings(job);
    BEL_TRY(keep_model_file(job->estimator));
    return write_job_file(config);
}
