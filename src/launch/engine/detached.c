// The supervisor gets only the job's name, and reads the record and the cluster file itself. It has
// started once it has written the job's status; the wait for that is as long as the engine may
// need. If it fails earlier, the last line of its log is the reason. Cancelling is a signal, sent
// only if boot ID and start time show that the pid is still that process.
#include "launch/engine/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"

// --- Submitting ---------------------------------------------------------------------------------

enum { END_MS = 30000, LOOK_MS = 20 };

// Returns the last line of the supervisor's log, which has the reason of a failed start.
static char *last_line(const char *path)
{
    char *text;
    size_t size;
    bel_status *status = bel_file_read(path, &text, &size);
    if (status != NULL) {
        bel_status_ignore(status); // no reason to report then
        return bel_strf("see %s", path);
    }
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    static const char name[] = "belfry: ";
    if (strncmp(line, name, strlen(name)) == 0) line += strlen(name);
    char *copy = line[0] != '\0' ? bel_xstrdup(line) : bel_strf("see %s", path);
    bel_free(text);
    return copy;
}

// Waits until the supervisor has written the job's status.
static bel_status *wait_for_start(const bel_job_record *record, bel_linux_process *process,
                                  const char *log_path, int most_secs)
{
    int64_t deadline = bel_clock_ns() + most_secs * INT64_C(1000000000);
    bool ended = false;
    for (;;) {
        bel_linux_end end;
        if (!ended) ended = bel_linux_process_wait(process, LOOK_MS, &end);
        bel_job_record *now;
        bel_status *reading = bel_registry_read(record->name, &now);
        if (reading != NULL) { // it is reported as failed, so it must not run
            bel_linux_process_signal(process, SIGKILL, true);
            (void)bel_linux_process_wait(process, END_MS, &end);
            return reading;
        }
        bool started = now->state != BEL_JOB_QUEUED && now->state != BEL_JOB_LOST;
        bel_job_record_destroy(now);
        if (started) return NULL;
        if (ended) {
            char *reason = last_line(log_path);
            bel_status *status =
                BEL_ERR(BEL_ABORTED, "job %s did not start: %s", record->name, reason);
            bel_free(reason);
            return status;
        }
        if (bel_clock_ns() > deadline) {
            bel_linux_process_signal(process, SIGKILL, true);
            (void)bel_linux_process_wait(process, END_MS, &end);
            return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                           "job %s did not start within %d s; its supervisor was killed; see %s",
                           record->name, most_secs, log_path);
        }
    }
}

// Spawns the supervisor with its output in the log, in a separate session, so that it outlives the
// terminal.
static bel_status *detached_start(const bel_job_record *record, const char *log_path, int most_secs)
{
    static char program_name[] = "belfry", verb[] = "supervise";
    char *arguments[] = {program_name, verb, record->name, NULL};
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0) return bel_file_error(errno, "create", log_path);
    char *program = bel_linux_program();
    bel_linux_spawn spawn = {.program = program,
                             .arguments = arguments,
                             .standard = {-1, log, log},
                             .own_session = true};
    bel_linux_process process;
    bel_status *status = bel_linux_process_spawn(&spawn, &process);
    close(log);
    bel_free(program);
    if (status != NULL) return status;
    status = wait_for_start(record, &process, log_path, most_secs);
    if (process.descriptor >= 0) close(process.descriptor);
    return status;
}

void bel_job_record_failure(bel_job_record *record, const bel_status *status)
{
    record->state = BEL_JOB_FAILED;
    record->exit_code = bel_status_exit_code(status);
    record->ended_at = bel_clock_wall();
    bel_free(record->message);
    record->message = bel_xstrdup(bel_status_message(status));
    bel_status_ignore(bel_registry_update(record)); // the failure itself is reported
}

bel_status *bel_detached_submit(bel_job_record *record, int most_secs)
{
    char *log_path = bel_path_join(record->folder, "logs/supervisor.log");
    bel_status *status = detached_start(record, log_path, most_secs);
    bel_free(log_path);
    if (status != NULL) bel_job_record_failure(record, status);
    return status;
}

// --- Cancelling ---------------------------------------------------------------------------------

// Sends SIGTERM to the supervisor, which lets the job save and end.
bel_status *bel_detached_cancel(const bel_job_record *record)
{
    if (record->elsewhere) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "job %s is %s on %s, and this is another machine or container: cancel it "
                       "there",
                       record->name, bel_job_state_name(record->state), record->host);
    }
    char boot_id[64];
    bool same_boot = strcmp(record->boot_id, bel_linux_boot_id(boot_id)) == 0;
    bool running = record->state == BEL_JOB_RUNNING && same_boot;
    if (running && bel_linux_signal_exactly(record->supervisor, record->started_ticks, SIGTERM)) {
        return NULL;
    }
    const char *state = bel_job_state_name(record->state);
    if (running) state = "no longer RUNNING";
    return BEL_ERR(BEL_FAILED_PRECONDITION, "job %s is %s: there is nothing to cancel",
                   record->name, state);
}
