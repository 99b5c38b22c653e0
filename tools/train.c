// Verbs train_and_evaluate and train, in every role: the environment says which part of a job
// this process plays, and flags are the same in all. Only who speaks for the job (the master, or
// a single process) prints results; of a member the exit code counts, and its error is logged.
//
// A request to stop is no error: it ends with 128 plus the signal's number and a checkpoint that
// the same command goes on from. Where there was nothing to save yet, the status that says so
// becomes a line of the log and the same code. Signals are installed when the flags are known to
// be good and before any thread is started.
#include <signal.h>

#include "base/alloc.h"
#include "base/log.h"
#include "launch/task.h"
#include "results.h"
#include "setup.h"
#include "signals.h"
#include "verbs.h"

// Without --eval_files there is nothing to evaluate: verb train does not even have the flag.
static bool wants_evaluation(const bel_options *options)
{
    size_t count;
    bel_options_list(options, "eval_files", &count);
    return count > 0;
}

static bel_status *train(const bel_options *options, bel_setup *setup, bel_result *result)
{
    bel_train_spec train_spec = {.input_fn = bel_flag_input_open,
                                 .input_user = &setup->input,
                                 .max_steps = bel_options_int(options, "train_steps")};
    if (!wants_evaluation(options)) return bel_train(setup->estimator, &train_spec, result);
    bel_eval_spec eval_spec = {.input_fn = bel_flag_input_open,
                               .input_user = &setup->input,
                               .steps = bel_options_int(options, "eval_steps"),
                               .every_steps = bel_options_int(options, "eval_every_steps"),
                               .throttle_secs = bel_options_double(options, "eval_throttle_secs")};
    return bel_train_and_evaluate(setup->estimator, &train_spec, &eval_spec, 1, result);
}

// What the environment makes of this process: false and 0 without a task.
typedef struct place {
    bool member, has_supervisor;
    int worker_count;
} place;

// All flags as they are: --config_file takes it back, also in one process. Free with bel_free.
static char *make_job_file(const bel_options *options, const place *where)
{
    bel_str text = {0};
    bel_options_dump(options, &text);
    if (where->worker_count > 0 && !bel_options_is_given(options, "num_workers")) {
        bel_str_printf(&text, "num_workers: %d # of the cluster\n", where->worker_count);
    }
    return text.text;
}

// In a cluster only the master speaks for the job: what ends it is in the master's message.
static bel_status *find_place(place *out_place)
{
    bel_task *task;
    BEL_TRY(bel_task_from_environment(&task));
    *out_place = (place){0};
    if (task != NULL) {
        *out_place = (place){.member = task->role != BEL_ROLE_MASTER && !task->follows,
                             .has_supervisor = task->supervisor > 0,
                             .worker_count = task->worker_count};
    }
    bel_task_destroy(task);
    return NULL;
}

// Ended on request with nothing to save, because members had not joined yet, or because the master
// said so; then it has said why. Other errors stay.
static bel_status *take_early_end(bel_status *status, bool member, int *out_exit_code)
{
    int number = bel_signals_caught();
    bel_code code = bel_status_code(status);
    bool cancelled = code == BEL_CANCELLED && (member || number > 0);
    bool alone = code == BEL_UNAVAILABLE && member && number > 0; // the master has ended before
    if (!cancelled && !alone) return status;
    bel_log_write(member ? BEL_LOG_INFO : BEL_LOG_WARN, "%s", bel_status_message(status));
    *out_exit_code = number > 0 ? 128 + number : bel_status_exit_code(status);
    bel_status_destroy(status);
    return NULL;
}

static bel_status *run_member(const bel_options *options, bel_setup *setup, int *out_exit_code)
{
    bel_result result;
    return take_early_end(train(options, setup, &result), true, out_exit_code);
}

static bel_status *run_job(const bel_options *options, bel_setup *setup, int *out_exit_code)
{
    bel_result result = {0};
    bel_status *status = train(options, setup, &result);
    if (status != NULL) return take_early_end(status, false, out_exit_code);
    if (result.interrupted) {
        bel_log_write(
            BEL_LOG_WARN,
            "stopped by %s at step %lld; the checkpoint is in %s: run the same command again "
            "to go on",
            bel_signals_caught_name(), (long long)result.global_step, setup->model_dir);
        // Without a signal of its own a member was asked.
        *out_exit_code = 128 + (bel_signals_caught() > 0 ? bel_signals_caught() : SIGTERM);
    }
    return bel_results_print(&result, true, wants_evaluation(options),
                             bel_options_bool(options, "json"));
}

// A task says how many there are; flags of one process would go unread. A supervisor has compared
// them with its cluster before it started anybody.
static bel_status *check_counts(const bel_options *options, const place *where)
{
    static const char *const flags[] = {"num_workers", "parameter_server_count",
                                        "towers_of_workers"};
    bool alone = where->worker_count == 0;
    for (int i = 0; i < 3 && !alone && !where->has_supervisor; i++) {
        if (!bel_options_is_given(options, flags[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s is for one process, and the environment (TF_CONFIG or BELFRY_TASK) "
                       "says which there are; leave the flag out",
                       flags[i]);
    }
    return NULL;
}

bel_status *bel_verb_train(const bel_options *options, int *out_exit_code)
{
    place where;
    BEL_TRY(find_place(&where));
    BEL_TRY(check_counts(options, &where));
    bel_setup *setup;
    char *job_file = make_job_file(options, &where);
    bel_status *status = bel_setup_for_training(options, job_file, &setup);
    bel_free(job_file);
    BEL_TRY(status);
    bel_signals_install(where.has_supervisor);
    status = where.member ? run_member(options, setup, out_exit_code)
                          : run_job(options, setup, out_exit_code);
    bel_setup_destroy(setup);
    return status;
}
