// Verb supervise: supervisor process of a submitted job. It is internal: an engine starts it, on
// the host of the submission or elsewhere, with its output in the job's logs/supervisor.log. It
// first claims the record, under the registry's lock. From then on only this process writes the
// job's status, and a job that failed to start gets a final state, too.
//
// RUNNING is written when all processes have started and signals are handled, because any reader of
// RUNNING may send a signal. The master's results are stored before the final state is written, so
// that readers of the final state find them. If a status cannot be written, that is a warning,
// because the training is more valuable.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "command/results.h"
#include "command/verbs.h"
#include "jobs/job_text.h"
#include "launch/engine/engine.h"
#include "launch/engine/registry.h"
#include "launch/supervise/stop_signals.h"
#include "launch/supervise/supervisor.h"
#include "train/distribute.h"

// --- The record while the job runs --------------------------------------------------------------

// Writes the record. A failure does not end training.
static void write_record(const bel_job_record *record)
{
    bel_status *status = bel_registry_update(record);
    if (status == NULL) return;
    bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
    bel_status_destroy(status);
}

// The first call comes after all processes have started and signals are handled: only then may
// other processes read RUNNING and send a signal.
static void on_change(void *context, const char *progress)
{
    bel_job_record *record = context;
    if (record->state == BEL_JOB_QUEUED) {
        record->state = BEL_JOB_RUNNING;
        record->started_at = bel_clock_wall();
    }
    if (progress != NULL) {
        bel_free(record->progress);
        record->progress = bel_xstrdup(progress);
    }
    write_record(record);
}

static void set_end(bel_job_record *record, bel_job_state state, int exit_code, const char *message)
{
    record->state = state;
    record->exit_code = exit_code;
    record->ended_at = bel_clock_wall();
    bel_free(record->message);
    record->message = bel_xstrdup(message != NULL ? message : "");
    write_record(record);
}

// --- The job ------------------------------------------------------------------------------------

// Stores the master's output in the job's folder.
static bel_status *keep_output(const bel_job_record *record, const char *output)
{
    char *path = bel_path_join(record->folder, "output.txt");
    bel_status *status = bel_file_write_atomic(path, output, strlen(output));
    bel_free(path);
    return status;
}

// Context of a start of the job.
typedef struct job_start {
    bel_job_record *record;
    const bel_words *words;
    int *out_exit_code;
} job_start;

static bel_status *supervise_run(const job_start *own, const bel_plan *plan, const bel_reach *reach,
                                 bel_scale *scaled)
{
    bel_job_record *record = own->record;
    const bel_words *words = own->words;
    char *log_dir = bel_path_join(record->folder, "logs");
    char *program = words->program != NULL ? bel_xstrdup(words->program) : bel_linux_program();
    bel_supervisor_config config = {.plan = plan,
                                    .job = record->name,
                                    .program = program,
                                    .arguments = words->items,
                                    .log_dir = log_dir,
                                    .model_dir = record->model_dir,
                                    .scaled = *scaled,
                                    .reach = reach,
                                    .folder = record->directory,
                                    .changed = on_change,
                                    .context = record};
    bel_supervisor_result result = {0};
    bel_stop_signals_block(); // the outcome is written in any case
    bel_status *status = bel_supervise(&config, &result);
    *scaled = result.scaled;
    if (status == NULL && scaled->servers == 0) {
        bel_job_state state = result.stopped          ? BEL_JOB_CANCELLED
                              : result.exit_code == 0 ? BEL_JOB_SUCCEEDED
                                                      : BEL_JOB_FAILED;
        status = keep_output(record, result.output);
        set_end(record, state, result.exit_code, result.message);
        *own->out_exit_code = result.exit_code;
        if (status == NULL && result.message != NULL) {
            status = BEL_ERR(BEL_ABORTED, "%s", result.message);
        }
    }
    bel_free(result.message);
    bel_free(result.output);
    bel_free(program);
    bel_free(log_dir);
    return status;
}

// A job that was stopped to be scaled waits for hosts that are away for the moment.
static bel_status *make_reach(const bel_engine *engine, const bel_job_record *record,
                              const bel_plan *plan, bool again, bel_reach **out_reach)
{
    enum { TRIES = 30, PAUSE_SECS = 10 };
    bel_status *status = engine->reach(record, plan, out_reach);
    for (int i = 1; again && status != NULL && i < TRIES; i++) {
        bel_log_write(BEL_LOG_WARN, "%s: it is tried again", bel_status_message(status));
        bel_status_ignore(status); // reported
        (void)nanosleep(&(struct timespec){.tv_sec = PAUSE_SECS}, NULL);
        status = engine->reach(record, plan, out_reach);
    }
    return status;
}

static bel_status *supervise_start(void *context, const bel_distribution *distribution,
                                   bel_scale *scaled)
{
    const job_start *own = context;
    const bel_engine *engine = bel_engine_find(own->record->engine);
    bel_reach *reach = NULL;
    if (engine != NULL && engine->reach != NULL) {
        bel_engine_place(engine, distribution->plan);
        BEL_TRY(make_reach(engine, own->record, distribution->plan, scaled->servers > 0, &reach));
    }
    bel_status *status = supervise_run(own, distribution->plan, reach, scaled);
    if (reach != NULL) reach->destroy(reach);
    return status;
}

static bel_status *run_with_cluster(bel_job_record *record, bel_cluster *cluster,
                                    int *out_exit_code)
{
    bel_words words = {0};
    bel_words_from_record(&words, record);
    job_start own = {record, &words, out_exit_code};
    bel_status *status =
        bel_distribution_run(&words, record->model_dir, cluster, supervise_start, &own);
    bel_words_deinit(&words);
    return status;
}

// Returns the engine's name for this job if the engine has restarted it.
static const char *started_again(void)
{
    return getenv("SLURM_RESTART_COUNT") != NULL ? getenv("SLURM_JOB_ID") : NULL;
}

bel_status *bel_verb_supervise(const bel_options *options, int *out_exit_code)
{
    const char *name;
    BEL_TRY(bel_job_take_name(options, false, &name));
    bel_job_record *record;
    bel_cluster *cluster;
    BEL_TRY(bel_registry_claim(name, started_again(), &record));
    bel_status *status = NULL;
    if (record->directory[0] != '\0' && chdir(record->directory) != 0) {
        status = bel_file_error(errno, "enter", record->directory);
    }
    if (status == NULL) status = bel_job_record_cluster(record, &cluster);
    if (status == NULL) {
        status = run_with_cluster(record, cluster, out_exit_code);
        bel_cluster_destroy(cluster);
    }
    if (status != NULL && !bel_job_state_is_final(record->state)) { // it never ran
        set_end(record, BEL_JOB_FAILED, bel_status_exit_code(status), bel_status_message(status));
    }
    bel_job_record_destroy(record);
    return status;
}
