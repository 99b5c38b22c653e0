// Search for the master, and the join, the first time and again. It calls with growing pauses until
// the join timeout, counted again from each loss. Only a master that cannot be reached is called
// again; any other answer is final. A stop, or the end of a master in this process, ends the calls.
//
// On a network file system the token may be old for a while. So the folder's names are listed
// first. Until the master has answered, a changed token is sent in another join on the same stream,
// at most for the master's patience. While the main thread calls it does no other work.
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_host.h"
#include "base/log.h"
#include "base/number.h"
#include "base/requests.h"
#include "base/str.h"
#include "member/member_inner.h"

enum { NAP_NS = 50000000, SECOND_NS = 1000000000, HOST_TEXT = 256 };

// Listing the folder's names makes a network file system read it again.
static void look_at_folder(const char *model_dir)
{
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(model_dir, &names, &count)); // then the token is missing as well
    bel_dir_names_free(names, count);
}

// Reads the master's token from the model folder; "" if it cannot be read here. Returns true if it
// has changed.
static bool read_token(member *m)
{
    const char *model_dir = m->estimator->config.model_dir;
    char *path = bel_path_join(model_dir, BEL_TOKEN_FILE), *token = NULL;
    size_t size;
    look_at_folder(model_dir);
    bel_status_ignore(bel_file_read(path, &token, &size)); // the master reports the error
    if (token == NULL) token = bel_xstrdup("");
    bool other = m->master.token == NULL || strcmp(token, m->master.token) != 0;
    bel_free(path);
    bel_free(m->master.token);
    m->master.token = token;
    m->master.token_ns = bel_clock_awake_ns();
    return other;
}

// Returns the step of its state.
static int64_t step_of(const member *m)
{
    bel_str words = {0};
    int64_t step = 0;
    if (m->worker.worker != NULL) step = bel_worker_doing(m->worker.worker, &words);
    if (m->shard.shard != NULL) step = bel_shard_doing(m->shard.shard, &words);
    bel_str_deinit(&words);
    return step;
}

// Sends its identity, its state's step and, for a worker, the settings of its model and the size of
// its input.
static void send_join(member *m)
{
    char host[HOST_TEXT] = "?";
    if (gethostname(host, sizeof host - 1) != 0) bel_snprintf(host, sizeof host, "?");
    const bel_settings *settings = &m->worker.trainable.settings;
    size_t count = (size_t)settings->count;
    Bel__Setting *list = bel_xcalloc(count + 1, sizeof *list);
    Bel__Setting **pointers = bel_xcalloc(count + 1, sizeof *pointers);
    for (size_t i = 0; i < count; i++) {
        bel__setting__init(pointers[i] = &list[i]);
        list[i].name = settings->names[i];
        list[i].value = settings->values[i];
    }
    char *version = bel_xstrdup(bel_version());
    char *address = bel_xstrdup(bel_endpoint_address(m->endpoint));
    Bel__Join join;
    bel__join__init(&join);
    join.protocol = BEL_PROTOCOL_VERSION;
    join.version = version;
    join.role = (int32_t)m->task->role;
    join.index = m->task->index;
    join.incarnation = m->task->incarnation;
    join.host = host;
    join.pid = (int64_t)getpid();
    join.address = address;
    join.token = m->master.token;
    join.step = step_of(m);
    join.settings = pointers;
    join.n_settings = count;
    join.clock = bel_clock_ns();
    if (m->worker.trainable.collectives.length > 0)
        join.collectives = m->worker.trainable.collectives.text;
    const bel_input *input = m->worker.trainable.input; // NULL: no worker
    char *file =
        bel_xstrdup(input != NULL && bel_input_file(input) != NULL ? bel_input_file(input) : "");
    join.records = input != NULL ? bel_input_records(input) : 0;
    join.epoch_records = input != NULL ? bel_input_epoch_records(input) : 0;
    join.data_file = file;
    join.leaves = bel_leave_stood() && m->program->master_over == NULL;
    join.held_generation = m->shard.held.generation;
    join.held_step = m->shard.held.step;
    join.held_snapshot = m->shard.held.snapshot;
    if (m->shm.place != NULL) join.place = m->shm.place;
    join.mirror_generation = m->shard.mirror.held.generation;
    join.mirror_step = m->shard.mirror.held.step;
    bel_member_send(m, &join.base);
    bel_free(version);
    bel_free(address);
    bel_free(file);
    bel_free(list);
    bel_free(pointers);
}

// Calls the master once. On failure *out_why is the reason, or stays that of an earlier call if
// this call has no reason: the last of many may have had no time left.
static bool call_master(member *m, int64_t deadline, bel_status **out_why)
{
    int64_t until = bel_clock_awake_ns() + (int64_t)(m->task->silence_timeout_secs * 1e9);
    if (until > deadline) until = deadline;
    m->master.mailbox = bel_mailbox_open(m->endpoint, m->task->master_address, m->bell);
    while (!bel_mailbox_was_open(m->master.mailbox) && !bel_mailbox_is_over(m->master.mailbox) &&
           bel_clock_awake_ns() < until)
        (void)bel_doorbell_wait(m->bell, bel_clock_ns() + NAP_NS);
    if (bel_mailbox_was_open(m->master.mailbox) && !bel_mailbox_is_over(m->master.mailbox))
        return true;
    bel_status *why =
        bel_mailbox_is_over(m->master.mailbox) ? bel_mailbox_why(m->master.mailbox) : NULL;
    if (why != NULL) {
        bel_status_destroy(*out_why);
        *out_why = why;
    }
    bel_mailbox_close(m->master.mailbox, 0);
    m->master.mailbox = NULL;
    return false;
}

bel_status *bel_member_leave(member *m)
{
    char name[32];
    const char *role = bel_role_text(m->task->role, m->task->index, name);
    bel_log_event(BEL_LOG_DEBUG, "leaves", (long long)getpid(), "%s leaves", role);
    return BEL_ERR(BEL_CANCELLED, "%s has left the job, as it was told to", role);
}

// True if this process must leave and cannot report it to a master. The next master saves a shard's
// state, if it comes soon, and a member that has never met a master waits for one; others have
// nothing to lose.
static bool may_go_unheard(member *m)
{
    const int64_t patience_ns = 15 * (int64_t)SECOND_NS;
    if (!bel_leave_requested()) return false;
    if (m->told.leave_ns == 0) m->told.leave_ns = bel_clock_awake_ns();
    bool waits = m->generation > 0 ? m->shard.here : !m->master.answered;
    return !waits || bel_clock_awake_ns() - m->told.leave_ns > patience_ns;
}

// Error after all calls; takes `why`, NULL if no call had a reason.
static bel_status *no_master(const member *m, bel_status *why)
{
    const char *address = m->task->master_address;
    if (!bel_linux_host_is_known(address)) {
        bel_status_destroy(why);
        why = BEL_ERR(BEL_UNAVAILABLE, "its host name does not resolve");
    }
    if (why == NULL) why = BEL_ERR(BEL_UNAVAILABLE, "it does not answer");
    const char *hint = bel_endpoint_tls_hint(m->endpoint);
    if (hint != NULL && bel_status_code(why) == BEL_UNAVAILABLE) {
        bel_status *secured =
            BEL_ERR(BEL_UNAVAILABLE, "%s; hint: if it runs, see %s", bel_status_message(why), hint);
        bel_status_destroy(why);
        why = secured;
    }
    return bel_status_wrap(why, __FILE__, __LINE__, "cannot reach the master at %s", address);
}

// A ring of the bell, such as the one of the failed call, does not shorten the pause. A new
// request, and the end of a master in this process, do. At least half of the time left stays for
// calls.
static void pause_search(member *m)
{
    const atomic_bool *over = m->program->master_over;
    bool leaves = bel_leave_requested(), stops = bel_stop_requested();
    int64_t now = bel_clock_awake_ns();
    int64_t left = m->master.sought_ns + (int64_t)(m->task->join_timeout_secs * 1e9) - now;
    int64_t pause = bel_backoff_next(&m->master.backoff);
    int64_t until = now + (pause < left / 2 ? pause : left / 2);
    for (; now < until; now = bel_clock_awake_ns()) {
        bool asked = (!leaves && bel_leave_requested()) || (!stops && bel_stop_requested());
        if (asked || (over != NULL && atomic_load(over))) return;
        (void)bel_doorbell_wait(m->bell,
                                bel_clock_ns() + (until - now < NAP_NS ? until - now : NAP_NS));
    }
}

// True if this process is asked to stop and no master will save its work. A master that does not
// answer at all may stand still (SIGSTOP), and saves when it continues. Its supervisor kills it
// after twice the silence timeout.
static bool stops_without_master(const member *m, const bel_status *why)
{
    int64_t patience_ns = 2 * (int64_t)(m->task->silence_timeout_secs * 1e9);
    bool stands = why == NULL && m->generation > 0 &&
                  bel_clock_awake_ns() - m->master.sought_ns < patience_ns;
    return bel_stop_requested() && !stands;
}

// Runs on the main thread. Returns with an open stream, or when no further call makes sense.
bel_status *bel_member_join(member *m)
{
    if (m->master.sought_ns == 0) m->master.sought_ns = bel_clock_awake_ns();
    int64_t deadline = m->master.sought_ns + (int64_t)(m->task->join_timeout_secs * 1e9);
    bel_status *why = NULL;
    while (!call_master(m, deadline, &why)) {
        // A master that is exiting, or has just exited, may answer a call before its host does.
        bel_code code = bel_status_code(why);
        bool gone = why == NULL || code == BEL_UNAVAILABLE || code == BEL_CANCELLED;
        const atomic_bool *over = m->program->master_over;
        bool again = gone && bel_clock_awake_ns() < deadline && !stops_without_master(m, why) &&
                     (over == NULL || !atomic_load(over));
        if (may_go_unheard(m)) {
            bel_status_ignore(why); // no longer relevant
            return bel_member_leave(m);
        }
        if (!again) return no_master(m, why);
        pause_search(m);
    }
    bel_status_ignore(why); // from earlier calls, before the master was ready
    m->master.answered = false;
    m->master.joined_ns = bel_clock_awake_ns();
    (void)read_token(m);
    send_join(m);
    return NULL;
}

// Takes `why`; NULL: the stream ended in order.
static bel_status *lost_master(const member *m, bel_status *why)
{
    if (why == NULL) why = BEL_ERR(BEL_UNAVAILABLE, "its connection ended");
    return bel_status_wrap(why, __FILE__, __LINE__, "lost the master at %s",
                           m->task->master_address);
}

// Answers that another call would get again.
static bool is_final(const bel_status *why)
{
    bel_code code = bel_status_code(why);
    return code == BEL_FAILED_PRECONDITION || code == BEL_ALREADY_EXISTS ||
           code == BEL_UNAUTHENTICATED || code == BEL_PERMISSION_DENIED || code == BEL_OUT_OF_RANGE;
}

// Repeats the reports that this master has not received: it is another one, or did not accept this
// member.
static void tell_again(member *m)
{
    m->worker.told = m->told.stop = m->told.leave = false;
    m->told.status_ns = 0;
    bel_member_shard_tell_again(m);
}

bel_status *bel_member_join_again(member *m)
{
    bel_mailbox_close(m->master.mailbox, 0);
    m->master.mailbox = NULL;
    bel_member_files_drop(m); // another setup comes
    BEL_TRY(bel_member_join(m));
    tell_again(m);
    return NULL;
}

// The master may be replaced, or only the connection may have broken: training continues meanwhile,
// and the master that answers receives all reports again.
bel_status *bel_member_find_master_again(member *m, bel_status *why)
{
    if (m->task->added && !m->master.answered && bel_status_code(why) == BEL_OUT_OF_RANGE) {
        bel_log_write(BEL_LOG_INFO, "not needed: %s", bel_status_message(why));
        bel_status_ignore(why); // started on a request that the master cannot meet, as it reports
        m->end.over = true;
        return NULL;
    }
    if (!bel_task_recovers(m->task) || is_final(why)) return lost_master(m, why);
    // A process that answers calls and ends each at once is no master: for example, another process
    // of the job with the same address. It is not called for longer than a silent one.
    enum { SERVED_NS = 1000000000 };
    int64_t now = bel_clock_awake_ns();
    bool served = m->master.answered || now - m->master.joined_ns > SERVED_NS;
    const atomic_bool *over = m->program->master_over;
    int64_t patience_ns = (int64_t)(m->task->join_timeout_secs * 1e9);
    bool enough = !served && (now - m->master.sought_ns > patience_ns || bel_end_requested() ||
                              (over != NULL && atomic_load(over)));
    if (enough) {
        bel_status_ignore(why); // from a call to another process
        return lost_master(m, BEL_ERR(BEL_UNAVAILABLE, "the process there ends every call; hint: "
                                                       "is it another process's address?"));
    }
    if (served) {
        m->master.sought_ns = now;
        m->master.backoff.tries = 0;
    } else {
        pause_search(m);
    }
    if (over == NULL && served) { // a master in this process reports its end itself
        bel_log_write(BEL_LOG_INFO, "lost the master at %s: calling it again",
                      m->task->master_address);
    }
    bel_status_ignore(why); // logged, or the same as before
    return bel_member_join_again(m);
}

// At most ten times a second, until the master has answered or would lose patience.
void bel_member_join_with_new_token(member *m)
{
    enum { PAUSE_NS = 100000000 };
    const int64_t patience_ns = BEL_TOKEN_PATIENCE_SECS * (int64_t)SECOND_NS;
    int64_t now = bel_clock_awake_ns();
    if ((m->master.answered && !m->fetches) || now - m->master.joined_ns > patience_ns ||
        now - m->master.token_ns < PAUSE_NS)
        return;
    if (!read_token(m)) return;
    send_join(m);
    tell_again(m);
}
