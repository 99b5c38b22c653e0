// Event files of training and of its evaluations. Each process appends to separate files and
// changes no file afterwards: if training goes back, or a run is resumed, a START record voids the
// values of later steps. So a crash costs at most the records that were not flushed.
//
// Folders of evaluations are opened with their first result.
#include "report/run_log.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "report/event_file.h"

typedef struct folder {
    char *name;
    bel_event_file *events;
} folder;

struct bel_run_log {
    char *model_dir;
    int64_t first_step;
    bel_event_file *events; // NULL in a follower
    folder folders[BEL_MAX_EVALS];
    int folder_count;
    bool warned; // a warning about failed writes was logged
};

// Takes ownership of the status of a write.
static void run_log_note(bel_run_log *log, bel_status *status)
{
    if (status != NULL && !log->warned) {
        bel_log_write(BEL_LOG_WARN, "curves are not written for now: %s",
                      bel_status_message(status));
    }
    log->warned = status != NULL;
    bel_status_destroy(status);
}

bel_status *bel_run_log_open(const char *model_dir, int64_t first_step, bel_run_log **out_log)
{
    bel_run_log *log = bel_xcalloc(1, sizeof *log);
    log->model_dir = bel_xstrdup(model_dir);
    log->first_step = first_step;
    bel_status *status = bel_event_file_open(model_dir, &log->events);
    if (status != NULL) {
        bel_run_log_close(log);
        return status;
    }
    bel_event_file_session_start(log->events, first_step + 1);
    *out_log = log;
    return NULL;
}

void bel_run_log_go_back(bel_run_log *log, int64_t step)
{
    bel_event_file_session_start(log->events, step + 1);
    for (int i = 0; i < log->folder_count; i++)
        bel_event_file_session_start(log->folders[i].events, step + 1);
}

void bel_run_log_scalar(bel_run_log *log, int64_t step, const char *tag, double value)
{
    bel_event_file_scalar(log->events, bel_clock_wall(), step, tag, (float)value);
}

void bel_run_log_text(bel_run_log *log, int64_t step, const char *tag, const char *text)
{
    bel_event_file_text(log->events, bel_clock_wall(), step, tag, text);
}

// "global_step/sec" is the tag for the speed that users of TensorFlow's Estimator know.
void bel_run_log_step(bel_run_log *log, const bel_run_point *point)
{
    bel_run_log_scalar(log, point->step, "loss", point->loss);
    if (!isnan(point->learning_rate))
        bel_run_log_scalar(log, point->step, "learning_rate", point->learning_rate);
    if (point->examples_per_second <= 0) return;
    bel_run_log_scalar(log, point->step, "examples_per_second", point->examples_per_second);
    bel_run_log_scalar(log, point->step, "global_step/sec", point->steps_per_second);
}

// Returns the open file of that folder, opening it on first use. The number of folders is bounded.
static bel_status *folder_events(bel_run_log *log, const char *name, bel_event_file **out_events)
{
    for (int i = 0; i < log->folder_count; i++) {
        if (strcmp(log->folders[i].name, name) != 0) continue;
        *out_events = log->folders[i].events;
        return NULL;
    }
    if (log->folder_count == BEL_MAX_EVALS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "more than %d evaluations", BEL_MAX_EVALS);
    }
    char *path = bel_path_join(log->model_dir, name);
    folder *f = &log->folders[log->folder_count];
    bel_status *status = bel_event_file_open(path, &f->events);
    bel_free(path);
    if (status != NULL) return status;
    f->name = bel_xstrdup(name);
    log->folder_count++;
    bel_event_file_session_start(f->events, log->first_step + 1);
    *out_events = f->events;
    return NULL;
}

static void write_evaluation(bel_event_file *events, const bel_result *result,
                             const bel_details *details)
{
    double now = bel_clock_wall();
    int64_t step = result->global_step;
    bel_event_file_scalar(events, now, step, "loss", (float)result->loss);
    for (int m = 0; m < result->metric_count; m++) {
        bel_event_file_scalar(events, now, step, result->metrics[m].name,
                              (float)result->metrics[m].value);
    }
    bel_details_write(details, events);
}

void bel_run_log_evaluation(bel_run_log *log, const char *name, const bel_result *result,
                            const bel_details *details)
{
    bel_event_file *events = NULL;
    bel_status *status = folder_events(log, name, &events);
    if (status == NULL) {
        write_evaluation(events, result, details);
        status = bel_event_file_flush(events);
    }
    run_log_note(log, status);
}

void bel_run_log_sync(bel_run_log *log, const char *name)
{
    bel_event_file *events = NULL;
    bel_status *status = folder_events(log, name, &events);
    if (status == NULL) status = bel_event_file_sync(events);
    run_log_note(log, status);
}

bel_status *bel_run_log_add(const char *model_dir, const char *name, const bel_result *result,
                            const bel_details *details)
{
    bel_event_file *events;
    char *path = bel_path_join(model_dir, name);
    bel_status *status = bel_event_file_open(path, &events);
    bel_free(path);
    BEL_TRY(status);
    write_evaluation(events, result, details);
    return bel_event_file_close(events);
}

bel_run_log *bel_run_log_create_follower(const char *model_dir)
{
    bel_run_log *log = bel_xcalloc(1, sizeof *log);
    log->model_dir = bel_xstrdup(model_dir);
    return log;
}

void bel_run_log_follow(bel_run_log *log, const char *name, const bel_result *result,
                        const bel_details *details)
{
    bel_event_file *events = NULL;
    log->first_step = result->global_step; // for a folder that is opened now
    char *where = name != NULL ? bel_strf("evaluator_%s", name) : bel_xstrdup("evaluator");
    bel_status *status = folder_events(log, where, &events);
    bel_free(where);
    if (status == NULL) {
        bel_event_file_session_start(events, result->global_step + 1);
        write_evaluation(events, result, details);
        status = bel_event_file_flush(events);
    }
    run_log_note(log, status);
}

void bel_run_log_flush(bel_run_log *log)
{
    bel_status *first = bel_event_file_flush(log->events);
    for (int i = 0; i < log->folder_count; i++) {
        bel_status *status = bel_event_file_flush(log->folders[i].events);
        if (first == NULL)
            first = status;
        else
            bel_status_ignore(status); // one is reported
    }
    run_log_note(log, first);
}

void bel_run_log_close(bel_run_log *log)
{
    if (log == NULL) return;
    if (log->events != NULL) run_log_note(log, bel_event_file_close(log->events));
    for (int i = 0; i < log->folder_count; i++) {
        run_log_note(log, bel_event_file_close(log->folders[i].events));
        bel_free(log->folders[i].name);
    }
    bel_free(log->model_dir);
    bel_free(log);
}
