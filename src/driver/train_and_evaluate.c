// bel_train_and_evaluate: finds this process's role in the job and passes on its inputs. Without a
// task in the environment (launch/task/task.h) the process is the whole job. Otherwise it is a
// master, or a member: a worker, a parameter server or an evaluator. A master that trains also has
// a worker, which is a member on a separate thread of its process.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/isa.h"
#include "base/linux_host.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/long_wait.h"
#include "base/number.h"
#include "base/requests.h"
#include "base/sized.h"
#include "base/str.h"
#include "base/thread.h"
#include "belfry/replica.h"
#include "driver/hear_input.h"
#include "driver/reach.h"
#include "estimator/estimator_inner.h"
#include "launch/folder/sockets.h"
#include "launch/folder/start_count.h"
#include "master/job/master.h"
#include "member/member.h"
#include "model/input_fn.h"
#include "model/remote_input.h"

typedef struct trainer { // the worker of a master that trains: a member in the same process
    bel_task task;
    bel_member_program program;
    pthread_t thread;
    bel_status *status; // the master's, once it has finished
    atomic_bool master_over;
} trainer;

// Called if a step of that worker does not end. Nothing that it uses can be freed, not even by the
// caller, so the process exits here with the master's message.
static void leave_without_step(void *context)
{
    const trainer *t = context;
    if (t->status != NULL) bel_log_failure(t->status);
    _exit(bel_status_exit_code(t->status));
}

static void *trainer_main(void *argument)
{
    trainer *t = argument;
    bel_result result;
    bel_status_ignore(bel_member_run(&t->task, &t->program, &result)); // the master receives it
    return NULL;
}

// Returns the listening address of that worker's shard, beside the master's address.
static char *trainer_address(const bel_task *task)
{
    const char *address = task->listen_address, *colon = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0) return bel_strf("%s.worker", address);
    return bel_strf("%.*s:0", (int)(colon - address), address);
}

static bel_status *run_training_master(const bel_master_config *config,
                                       const bel_member_program *program, bel_result *out_result)
{
    trainer t = {.task = *config->task, .program = *program};
    t.program.master_over = &t.master_over;
    t.program.leave = leave_without_step;
    t.program.leave_context = &t;
    t.task.role = BEL_ROLE_WORKER;
    t.task.index = 0;
    t.task.listen_address = trainer_address(config->task);
    bel_status *status = bel_thread_start(&t.thread, trainer_main, &t);
    if (status == NULL) {
        status = t.status = bel_master_run(config, out_result);
        atomic_store(&t.master_over, true);
        pthread_join(t.thread, NULL);
    }
    bel_free(t.task.listen_address);
    return status;
}

static bel_master_config master_of(const bel_member_program *program, const bel_task *task)
{
    return (bel_master_config){.estimator = program->estimator,
                               .train = program->train,
                               .evals = program->evals,
                               .eval_count = program->eval_count,
                               .task = task};
}

// Counts starts, because other launchers do not provide a role's incarnation.
static bel_status *count_start(bel_task *task, const bel_estimator *estimator)
{
    if (!task->foreign || task->follows) return NULL;
    return bel_start_count(estimator->config.model_dir, task->role, task->index,
                           &task->incarnation);
}

// Warns of a job that others can take part in, or read.
static void warn_of_readers(const bel_task *task)
{
    bool secret = task->secret[0] != '\0', tls = task->tls_ca != NULL;
    const char *address = task->master_address;
    if (task->follows) return;
    if (bel_linux_address_is_loopback(address)) {
        if (secret || task->socket_folder != NULL) return;
        bel_log_write(BEL_LOG_WARN,
                      "BELFRY_SECRET is not set: any process on this host can take part in the "
                      "job, at %s",
                      address);
    } else if (!tls && task->role == BEL_ROLE_MASTER) { // once is enough
        bel_log_write(BEL_LOG_WARN,
                      "without TLS the job's secret, parameters and gradients go to %s in clear: "
                      "use a network that only this job's hosts can see, or TLS (`belfry certs`)",
                      address);
    }
}

// A master that does not train needs no training data: a worker describes it. The command knows it
// before the model is chosen, which depends on the columns.
static bel_status *describe_input(bel_task *task, bel_member_program *program,
                                  bel_remote_input **out_input)
{
    bel_estimator *estimator = program->estimator;
    const bel_train_spec *train = program->train;
    *out_input = NULL;
    if (estimator->remote_input != NULL || !bel_may_hear_input(task)) return NULL;
    bel_str error = {0};
    bel_status *status = NULL;
    if (bel_input_fn_is_elsewhere(train->input_fn, train->input_user, estimator, &error)) {
        const char *why = error.length > 0 ? error.text : BEL_INPUT_ELSEWHERE;
        status = bel_hear_input(task, why, out_input);
    }
    bel_str_deinit(&error);
    if (status == NULL && *out_input != NULL) estimator->remote_input = *out_input;
    return status;
}

static bel_status *run_master(bel_task *task, bel_member_program *program, bel_result *out_result)
{
    bool follows = task->evaluator_count > 0; // an evaluator does
    if (follows && program->eval_count > 0 && program->evals[0].every_steps > 0) {
        bel_log_write(BEL_LOG_WARN,
                      "with an evaluator, checkpoints are evaluated as they come: the "
                      "evaluations' every_steps (eval_every_steps) counts for nothing");
    }
    bel_master_config config = master_of(program, task);
    if (follows) {
        config.evaluator_evals = config.evals;
        config.evaluator_count = config.eval_count;
        config.eval_count = 0;
    }
    if (task->master_trains) return run_training_master(&config, program, out_result);
    bel_remote_input *described;
    BEL_TRY(describe_input(task, program, &described));
    bel_status *status = bel_master_run(&config, out_result);
    if (described != NULL) program->estimator->remote_input = NULL;
    bel_remote_input_destroy(described);
    return status;
}

static bel_status *run_task(bel_task *task, bel_member_program *program, bel_result *out_result)
{
    char name[48];
    bel_snprintf(name, sizeof name, "%s-%d", bel_role_name(task->role), task->index);
    bel_fault_name_process(name, task->foreign || task->incarnation > 0);
    BEL_TRY(bel_task_reach(task));
    warn_of_readers(task);
    BEL_TRY(count_start(task, program->estimator));
    bel_linux_raise_file_limit();
    if (task->note != NULL && task->role == BEL_ROLE_MASTER)
        bel_log_write(BEL_LOG_INFO, "%s", task->note);
    if (task->follows) return bel_member_follow(program, task->join_timeout_secs, out_result);
    if (task->role != BEL_ROLE_MASTER) return bel_member_run(task, program, out_result);
    return run_master(task, program, out_result);
}

// Ranks share a folder of sockets; the master locks it, so that no cleanup removes it.
static bel_status *enter_folder(const bel_task *task, int *out_lock)
{
    *out_lock = -1;
    if (task->socket_folder == NULL) return NULL;
    BEL_TRY(bel_sockets_share(task->socket_folder));
    if (task->role != BEL_ROLE_MASTER) return NULL;
    return bel_linux_lock_folder(task->socket_folder, out_lock);
}

// The supervisor removes the folder of the sockets; without one, the last process does.
static void leave_folder(const bel_task *task, int lock)
{
    static const char prefix[] = "unix:";
    size_t skip = sizeof prefix - 1;
    const char *address = task->listen_address, *slash = strrchr(address, '/');
    bool orphan = (task->supervisor > 0 && (int64_t)getppid() != task->supervisor) ||
                  task->socket_folder != NULL;
    bel_linux_unlock(lock);
    if (!orphan || slash == NULL || strncmp(address, prefix, skip) != 0) return;
    char *folder = bel_xstrndup(address + skip, (size_t)(slash - address) - skip);
    bel_sockets_abandon(folder);
    bel_free(folder);
}

// With specs of this library's size.
static bel_status *train_and_evaluate(bel_estimator *estimator, const bel_train_spec *train_spec,
                                      const bel_eval_spec *evals, int eval_count,
                                      bel_result *out_result)
{
    if (train_spec->max_steps < 0 || train_spec->steps < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "max_steps and steps must be at least 0, got %lld and %lld",
                       (long long)train_spec->max_steps, (long long)train_spec->steps);
    }
    if (train_spec->max_steps > 0 && train_spec->steps > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "max_steps, %lld, and steps, %lld, exclude each other: one counts from the "
                       "first run on, the other from here",
                       (long long)train_spec->max_steps, (long long)train_spec->steps);
    }
    bel_task *task;
    char lacks[BEL_ISA_TEXT];
    if (bel_isa_lacks(BEL_ISA_FAST, lacks)[0] != '\0') {
        bel_log_write(BEL_LOG_WARN, "this processor lacks %s: training is tens of times slower",
                      lacks);
    }
    BEL_TRY(bel_fault_check());
    BEL_TRY(bel_isa_check_wanted());
    BEL_TRY(bel_task_from_environment(estimator->config.chief_trains, &task));
    if (task != NULL && train_spec->steps > 0) {
        bel_task_destroy(task);
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "steps counts from where a call begins, but processes of a job may be "
                       "started again; give max_steps");
    }
    bel_task_follow_supervisor();
    bel_long_wait_note_training(false);
    bel_requests_begin(task != NULL && bel_task_recovers(task) && !task->follows);
    bel_member_program program = {
        .estimator = estimator, .train = train_spec, .evals = evals, .eval_count = eval_count};
    bel_status *status = NULL;
    int lock = -1;
    if (task != NULL) {
        status = enter_folder(task, &lock);
        if (status == NULL) status = run_task(task, &program, out_result);
    } else {
        const bel_master_config alone = master_of(&program, NULL);
        status = bel_master_run(&alone, out_result);
    }
    bel_requests_end(); // a request ends one job, even if it came before the start
    if (task != NULL) leave_folder(task, lock);
    bel_task_destroy(task);
    return status;
}

// Copies a list of specs, whose elements have the caller's size.
static bel_status *take_evals(const bel_eval_spec *given, int count, bel_eval_spec *out_evals)
{
    if (count < 0 || count > BEL_MAX_EVALS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there can be from 0 to %d evaluations, got %d",
                       BEL_MAX_EVALS, count);
    }
    if (count > 0 && given == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d evaluations, but their list is NULL", count);
    for (int i = 0; i < count; i++) {
        const char *one = (const char *)given + (size_t)i * given->size;
        BEL_TRY_CTX(bel_eval_spec_take(one, &out_evals[i]), "evaluation %d", i);
    }
    return NULL;
}

bel_status *bel_train_and_evaluate(bel_estimator *estimator, const bel_train_spec *given,
                                   const bel_eval_spec *given_evals, int eval_count,
                                   bel_result *out_result)
{
    bel_train_spec spec;
    bel_loop loop;
    bel_eval_spec evals[BEL_MAX_EVALS];
    BEL_TRY(bel_sized_take(&spec, sizeof spec, given, "bel_train_spec"));
    if (spec.input_fn == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "bel_train_spec: input_fn is not set");
    BEL_TRY(take_evals(given_evals, eval_count, evals));
    BEL_TRY(bel_sized_check(out_result, "bel_result"));
    if (spec.loop != NULL) {
        BEL_TRY(bel_sized_take(&loop, sizeof loop, spec.loop, "bel_loop"));
        spec.loop = &loop;
    }
    bel_result result = {.size = sizeof result};
    BEL_TRY(train_and_evaluate(estimator, &spec, evals, eval_count, &result));
    bel_sized_give(out_result, &result, sizeof result);
    return NULL;
}

bel_status *bel_train(bel_estimator *estimator, const bel_train_spec *train_spec,
                      bel_result *out_result)
{
    return bel_train_and_evaluate(estimator, train_spec, NULL, 0, out_result);
}
