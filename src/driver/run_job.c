// bel_run_job: the code of a program's main around bel_train_and_evaluate. The belfry command uses
// it too, so that a user's program ends, saves and reports in the same way. bel_train_with_signals
// does the same for a program that continues: it restores the handlers and returns the error.
//
// A request to stop (SIGINT) is not an error: the process exits with 128 plus the signal's number,
// after a checkpoint from which the same command continues. A request to leave (SIGTERM, or a
// notice about the machine) is not an error either: the job continues without this process. If
// there was nothing to save yet, the status that says so becomes a log line with the same exit
// code. In a cluster only the master reports for the job; a member has its exit code, and its error
// is logged.
//
// The handler only sets a flag and calls bel_request_stop or bel_request_leave, which are
// async-signal-safe; the rest happens in the training loop. A process that waits for its data
// (base/long_wait.h) has no step to save, and exits at once, also if the request came before the
// wait.
//
// A second signal ends the process with _exit, without saving and without waiting for any thread.
// Under a supervisor it is ignored, because the supervisor may forward a signal that all have
// received, and ends processes with SIGKILL. If that supervisor is gone, a timer ends a process
// that has not noticed the request.
//
// SIGHUP counts as SIGTERM, and stays ignored under nohup. SIGUSR1 and SIGUSR2 are a notice that
// the time is nearly up, before the signal that ends the process. SIGPIPE is ignored, so that a
// closed reader is a write error and does not end a training.
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/long_wait.h"
#include "base/requests.h"
#include "base/sized.h"
#include "base/str.h"
#include "driver/notice.h"
#include "estimator/estimator_inner.h"
#include "launch/folder/scale.h"
#include "launch/task/task.h"

enum { ANSWER_SECS = 600 }; // for a process without its supervisor to notice a request

static volatile sig_atomic_t caught, repeats_count, noticed;
static timer_t answer_timer;          // armed where repeated signals are ignored
static struct sigaction before_timer; // SIGALRM's handler, restored when the job ends
static volatile sig_atomic_t has_timer;
static pid_t supervisor;

static int code_of(int number)
{
    return 128 + (number == SIGINT ? SIGINT : SIGTERM);
}

static void on_timer(int number)
{
    (void)number;
    bool orphaned = getppid() != supervisor;
    if (orphaned && !bel_request_is_known()) _exit(code_of(caught));
}

static void on_signal(int number)
{
    const struct itimerspec patience = {.it_value = {.tv_sec = ANSWER_SECS}};
    if ((caught != 0 && repeats_count) || bel_long_wait_is_on()) _exit(code_of(number));
    bel_long_wait_note_signal(number);
    if (caught == 0 && has_timer) timer_settime(answer_timer, 0, &patience, NULL);
    if (number == SIGINT) {
        bel_request_stop(); // also in a process that was asked to leave
    } else {
        bel_request_leave();
    }
    if (caught == 0) caught = number == SIGHUP ? SIGTERM : number;
}

// A notice is not the first of two signals: the one that ends the machine's processes follows.
static void on_notice(void)
{
    noticed = 1;
    bel_request_leave();
}

// Schedulers send these before the time is up (Slurm: --signal=USR1@60).
static const int warnings[] = {SIGUSR1, SIGUSR2};

static void on_warning(int number)
{
    if (bel_long_wait_is_on()) _exit(code_of(number));
    on_notice();
}

// Returns the signal that asked this process to end; 0: none.
static int end_signal(void)
{
    return caught != 0 ? caught : noticed ? SIGTERM : 0;
}

// Without a timer, of which a user can have too many, repeated signals count.
static bool make_timer(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigemptyset(&action.sa_mask);
    supervisor = getppid();
    if (timer_create(CLOCK_MONOTONIC, &event, &answer_timer) != 0) return false;
    sigaction(SIGALRM, &action, &before_timer);
    return true;
}

// The program may run on as long as it likes, with its previous handler.
static void delete_timer(void)
{
    if (!has_timer) return;
    has_timer = false;
    timer_delete(answer_timer);
    sigaction(SIGALRM, &before_timer, NULL);
}

// Signals that take_signals may handle, and their handlers before it.
static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
enum { HANDLED = sizeof handled / sizeof handled[0] };

static void save_handlers(struct sigaction out_before[HANDLED])
{
    for (size_t i = 0; i < HANDLED; i++)
        sigaction(handled[i], NULL, &out_before[i]);
}

static void restore_handlers(const struct sigaction before[HANDLED])
{
    for (size_t i = 0; i < HANDLED; i++)
        sigaction(handled[i], &before[i], NULL);
}

static void take_signals(bool has_supervisor)
{
    caught = noticed = 0; // set by a signal during an earlier training
    has_timer = has_supervisor && make_timer();
    repeats_count = !has_timer;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    bool is_ignored =
        sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN; // set by nohup
    if (!is_ignored) sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_warning;
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++) {
        bool used = sigaction(warnings[i], NULL, &before) == 0 && before.sa_handler != SIG_DFL;
        if (!used) sigaction(warnings[i], &action, NULL); // otherwise the program uses it
    }
    signal(SIGPIPE, SIG_IGN);
}

static const char *caught_name(void)
{
    if (caught == 0 || !repeats_count) return "a request"; // may be a forwarded signal
    return caught == SIGINT ? "SIGINT" : "SIGTERM";
}

// This process's place in the environment: false without a task.
typedef struct place {
    bool in_job, member, has_supervisor;
} place;

// An evaluator that only follows checkpoints has no master that reports for it.
static bel_status *find_place(const bel_estimator *estimator, place *out_place)
{
    bel_task *task;
    BEL_TRY(bel_task_from_environment(estimator->config.chief_trains, &task));
    *out_place = (place){0};
    if (task != NULL) {
        *out_place = (place){.in_job = true,
                             .member = task->role != BEL_ROLE_MASTER && !task->follows,
                             .has_supervisor = task->supervisor > 0};
    }
    bel_task_destroy(task);
    return NULL;
}

// Handles the end of a process that was asked to end with nothing to save, because members had not
// joined yet, or because the master said so. The reason is logged, and *out_code is set. Other
// errors are returned.
static bel_status *end_on_request(bel_status *status, bool member, int *out_code)
{
    bel_code code = bel_status_code(status);
    int asked = end_signal();
    bool cancelled = code == BEL_CANCELLED && (member || asked > 0);
    bool alone = code == BEL_UNAVAILABLE && member && asked > 0; // the master ended first
    if (!cancelled && !alone) return status;
    bel_log_write(member ? BEL_LOG_INFO : BEL_LOG_WARN, "%s", bel_status_message(status));
    *out_code = asked > 0 ? 128 + asked : bel_status_exit_code(status);
    bel_status_destroy(status);
    return NULL;
}

static void watch_for_crashes(void)
{
    char *program = bel_linux_program();
    const char *slash = program != NULL ? strrchr(program, '/') : NULL;
    char *message = bel_strf("%s crashed", slash != NULL ? slash + 1 : "the program");
    bel_crash_watch(message, false);
    bel_free(message);
    bel_free(program);
}

// Logs why training ended early. A supervisor that scales the servers starts the job again.
static void say_stopped(const bel_estimator *estimator, const bel_result *result,
                        bool has_supervisor)
{
    const bel_run_config *config = &estimator->config;
    int servers = has_supervisor ? bel_scale_read(config->model_dir).servers : 0;
    if (servers > 0 && servers != config->parameter_server_count) {
        bel_log_write(BEL_LOG_INFO, "saved at step %lld, to continue with %d parameter server%s",
                      (long long)result->global_step, servers, servers == 1 ? "" : "s");
        return;
    }
    bel_log_write(BEL_LOG_WARN,
                  "stopped by %s at step %lld; the checkpoint is in %s: run the same command again "
                  "to continue",
                  caught_name(), (long long)result->global_step, config->model_dir);
}

// Trains with the handlers of take_signals. *out_code: the process's exit code, unless there is an
// error. *result is set in the process that represents the job.
static bel_status *train_taking_signals(bel_estimator *estimator, const bel_train_spec *train,
                                        const bel_eval_spec *evals, int eval_count,
                                        const place *where, bel_result *result, int *out_code)
{
    bel_result own = {.size = sizeof own};
    bel_notice *notice;
    take_signals(where->has_supervisor);
    bel_status *status = bel_notice_begin(on_notice, &notice);
    if (status == NULL) {
        status = bel_train_and_evaluate(estimator, train, evals, eval_count, &own);
        bel_notice_end(notice);
    }
    delete_timer();
    bel_long_wait_note_signal(0);
    *out_code = 0;
    if (status != NULL) return end_on_request(status, where->member, out_code);
    if (where->member) return NULL;
    *result = own;
    if (!own.interrupted) return NULL;
    say_stopped(estimator, &own, where->has_supervisor);
    // A member may have got a request but no signal.
    *out_code = 128 + (end_signal() > 0 ? end_signal() : SIGTERM);
    return NULL;
}

int bel_run_job(bel_estimator *estimator, const bel_train_spec *train, const bel_eval_spec *evals,
                int eval_count, bel_result *out_result)
{
    place where;
    int code;
    bel_result result = {.size = sizeof result};
    bel_status *status = bel_sized_check(out_result, "bel_result");
    if (status != NULL) return bel_status_report(status);
    bel_sized_give(out_result, &result, sizeof result);
    status = find_place(estimator, &where);
    if (status != NULL) return bel_status_report(status);
    watch_for_crashes();
    status = train_taking_signals(estimator, train, evals, eval_count, &where, &result, &code);
    if (status != NULL) return bel_status_report(status);
    bel_sized_give(out_result, &result, sizeof result);
    return code;
}

bel_status *bel_train_with_signals(bel_estimator *estimator, const bel_train_spec *train,
                                   const bel_eval_spec *evals, int eval_count,
                                   bel_result *out_result, int *out_exit_code)
{
    place where;
    int code;
    struct sigaction before[HANDLED];
    bel_result result = {.size = sizeof result};
    BEL_TRY(bel_sized_check(out_result, "bel_result"));
    BEL_TRY(find_place(estimator, &where));
    if (where.in_job) watch_for_crashes();
    save_handlers(before);
    bel_status *status =
        train_taking_signals(estimator, train, evals, eval_count, &where, &result, &code);
    bool asked = end_signal() > 0;
    restore_handlers(before);
    if (status != NULL) return status;
    bel_sized_give(out_result, &result, sizeof result);
    *out_exit_code = asked || where.in_job ? code : 0; // otherwise the program asked
    return NULL;
}
