// Each connection begins with the same hello, and the listening side judges it in one place
// (consider). A stranger is rejected and the meeting continues. A rank of this job that cannot take
// part ends the meeting for all. No wait is for a single connection: silent ones are polled in
// turns and closed after five seconds.
#include "ddl/meet.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/linux_host.h"
#include "base/log.h"
#include "base/number.h"
#include "base/secret.h"
#include "base/str.h"
#include "ddl/settings.h"
#include "ddl/socket.h"

#define HELLO_NS INT64_C(5000000000) // for a new connection to send its hello
enum {
    SECRET_BYTES = BEL_SECRET_MOST_BYTES + 4,
    ANSWER_TEXT = 512,
    MOST_PENDING = 2 * BEL_DDL_MAX_RANKS,
    LOOK_MS = 20
};
#define SECOND_NS INT64_C(1000000000)

static const char KIND[16] = "belfry ddl 1";

// A rank's first message on each of its connections. All hosts of a job have the same byte order.
typedef struct hello {
    char kind[16];
    int32_t rank, size, local_rank, local_size;
    int32_t port; // its listening port
    uint64_t job; // hash of the job's name
    char settings[BEL_DDL_SETTINGS_TEXT];
    char secret[SECRET_BYTES];
} hello;

// Rank 0's message when all ranks have connected, or when they will not.
typedef struct answer {
    char kind[16];
    int32_t code; // BEL_OK: continue
    int32_t together;
    char text[ANSWER_TEXT];
    struct {
        char host[BEL_DDL_ADDRESS_TEXT]; // "": rank 0's, as in the job's address
        int32_t port;
    } ranks[BEL_DDL_MAX_RANKS];
} answer;

// A connection whose hello is incomplete.
typedef struct pending {
    int file;
    int64_t deadline;
    size_t come;
    hello said;
} pending;

typedef struct meeting {
    const bel_launch *launch;
    hello own;
    int listener; // -1: closed
    int64_t timeout_ns;
    int files[BEL_DDL_MAX_RANKS];
    hello said[BEL_DDL_MAX_RANKS]; // from the ranks that connected here
    pending waiting[MOST_PENDING];
    int waiting_count;
} meeting;

static double seconds(const meeting *m)
{
    return (double)m->timeout_ns * 1e-9;
}

// A rank may be unresponsive for as long as others may wait for it.
static double patience(const meeting *m)
{
    enum { LEAST_SECS = 30 };
    return seconds(m) > LEAST_SECS ? seconds(m) : LEAST_SECS;
}

// --- Incoming connections ------------------------------------------------------------------------

// Takes constant time, so that timing does not reveal the secret.
static bool knows_secret(const meeting *m, const hello *said)
{
    unsigned differs = 0;
    for (size_t i = 0; i < sizeof said->secret; i++)
        differs |= (unsigned)(unsigned char)(said->secret[i] ^ m->own.secret[i]);
    return differs == 0;
}

static void turn_away(int file, bel_code code, const char *text)
{
    answer no = {.code = (int32_t)code};
    const char *why;
    memcpy(no.kind, KIND, sizeof KIND);
    bel_snprintf(no.text, sizeof no.text, "%s", text);
    // A peer that does not read it gets no reason, and its connection is closed anyway.
    (void)bel_ddl_socket_send(file, &no, sizeof no, &why);
    (void)close(file);
}

// Judges a complete hello. The job fails if one of its ranks cannot take part; a stranger is
// rejected.
static bel_status *take_hello(meeting *m, int file, const hello *said)
{
    int size = m->own.size, rank = said->rank;
    if (memcmp(said->kind, KIND, sizeof KIND) == 0 && knows_secret(m, said) &&
        said->job != m->own.job) {
        turn_away(
            file, BEL_FAILED_PRECONDITION,
            "rank 0 is of another job: the word that names it must be the same for all ranks");
        return NULL;
    }
    if (memcmp(said->kind, KIND, sizeof KIND) != 0 || !knows_secret(m, said)) {
        bel_log_write(BEL_LOG_WARN, "a process without the job's secret has connected");
        turn_away(file, BEL_UNAUTHENTICATED,
                  "rank 0 has another secret: BELFRY_SECRET must be the same for all ranks");
        return NULL;
    }
    if (said->size != size) {
        turn_away(file, BEL_FAILED_PRECONDITION, "ranks are told different numbers of ranks");
        return BEL_ERR(BEL_FAILED_PRECONDITION, "rank %d is one of %d ranks, and rank %d one of %d",
                       m->own.rank, size, rank, said->size);
    }
    if (rank <= m->own.rank || rank >= size || m->files[rank] >= 0) {
        turn_away(file, BEL_ALREADY_EXISTS, "this rank has joined already, or is not of this job");
        return NULL;
    }
    m->files[rank] = file;
    m->said[rank] = *said;
    if (memcmp(said->settings, m->own.settings, sizeof said->settings) == 0) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "rank %d has %s, and rank %d %.*s", m->own.rank,
                   m->own.settings, rank, (int)sizeof said->settings - 1, said->settings);
}

// Reads available bytes of hellos; forgets closed connections.
static bel_status *take_hellos(meeting *m)
{
    bel_status *status = NULL;
    for (int i = 0; i < m->waiting_count && status == NULL;) {
        pending *p = &m->waiting[i];
        const char *why;
        ssize_t came = bel_ddl_socket_receive(p->file, (char *)&p->said + p->come,
                                              sizeof p->said - p->come, &why);
        if (came == 0 && bel_clock_awake_ns() < p->deadline) {
            i++;
            continue;
        }
        if (came > 0) p->come += (size_t)came;
        if (came > 0 && p->come < sizeof p->said) continue;
        pending done = *p;
        *p = m->waiting[--m->waiting_count];
        if (came <= 0) {
            (void)close(done.file);
        } else {
            status = take_hello(m, done.file, &done.said);
        }
    }
    return status;
}

// Without room the oldest pending connection is closed.
static void take_newcomers(meeting *m)
{
    for (int file; (file = bel_ddl_socket_accept(m->listener, patience(m))) >= 0;) {
        if (m->waiting_count == MOST_PENDING) {
            (void)close(m->waiting[0].file);
            memmove(&m->waiting[0], &m->waiting[1], sizeof m->waiting - sizeof m->waiting[0]);
            m->waiting_count--;
        }
        m->waiting[m->waiting_count++] =
            (pending){.file = file, .deadline = bel_clock_awake_ns() + HELLO_NS};
    }
}

static void meeting_look(const meeting *m)
{
    struct pollfd entries[MOST_PENDING + 1];
    for (int i = 0; i < m->waiting_count; i++)
        entries[i] = (struct pollfd){.fd = m->waiting[i].file, .events = POLLIN};
    entries[m->waiting_count] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    (void)poll(entries, (nfds_t)m->waiting_count + 1, LOOK_MS);
}

static int first_missing(const meeting *m)
{
    for (int r = m->own.rank + 1; r < m->own.size; r++)
        if (m->files[r] < 0) return r;
    return -1;
}

static int first_lost(const meeting *m)
{
    for (int r = 0; r < m->own.size; r++)
        if (m->files[r] >= 0 && bel_ddl_socket_has_ended(m->files[r])) return r;
    return -1;
}

// Waits until all ranks above this one have connected here.
static bel_status *collect(meeting *m)
{
    int64_t deadline = bel_clock_awake_ns() + m->timeout_ns;
    for (int missing; (missing = first_missing(m)) >= 0;) {
        meeting_look(m);
        take_newcomers(m);
        BEL_TRY(take_hellos(m));
        int lost = first_lost(m);
        if (lost >= 0) {
            return BEL_ERR(BEL_ABORTED, "rank %d of %d has exited before all had come", lost,
                           m->own.size);
        }
        if (bel_clock_awake_ns() > deadline) {
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "rank %d of %d has not come within %g s", missing,
                           m->own.size, seconds(m));
        }
    }
    return NULL;
}

// --- Rank 0 --------------------------------------------------------------------------------------

// Finds consecutive ranks on each host, the same number on all: those of a host can share memory.
static int find_together(const meeting *m)
{
    int together = m->own.local_size;
    for (int r = 0; r < m->own.size; r++) {
        const hello *said = r == 0 ? &m->own : &m->said[r];
        if (said->local_size != together || said->local_rank != r % together) return 1;
    }
    return m->own.size % together == 0 ? together : 1;
}

static void answer_all(const meeting *m, const answer *text)
{
    int64_t deadline = bel_clock_awake_ns() + SECOND_NS;
    const char *why;
    for (int r = 1; r < m->own.size; r++)
        if (m->files[r] >= 0) // a rank that cannot be reached finds the connection closed
            (void)bel_ddl_socket_send_all(m->files[r], text, sizeof *text, deadline, &why);
}

static bel_status *be_met(meeting *m, int *out_together)
{
    int port;
    answer text = {.code = BEL_OK};
    memcpy(text.kind, KIND, sizeof KIND);
    BEL_TRY(bel_ddl_socket_listen(m->launch->host, m->launch->port, &m->listener, &port));
    bel_status *status = collect(m);
    if (status != NULL) {
        text.code = (int32_t)bel_status_code(status);
        bel_snprintf(text.text, sizeof text.text, "%s", bel_status_message(status));
    }
    for (int r = 1; r < m->own.size && status == NULL; r++) {
        bel_ddl_socket_address(m->files[r], true, text.ranks[r].host);
        if (bel_linux_host_is_loopback(text.ranks[r].host)) text.ranks[r].host[0] = '\0';
        text.ranks[r].port = m->said[r].port;
    }
    text.together = *out_together = find_together(m);
    answer_all(m, &text);
    return status;
}

// --- Other ranks ---------------------------------------------------------------------------------

static bel_status *lost_zero(const meeting *m, const char *why)
{
    return BEL_ERR(BEL_ABORTED, "rank 0 of %d has exited before all had come: %s", m->own.size,
                   why);
}

static bel_status *find_zero(meeting *m)
{
    const int64_t begun = bel_clock_ns(); // a name service that does not answer blocks a look
    int64_t deadline = bel_clock_awake_ns() + m->timeout_ns;
    for (;;) {
        bel_status *status = bel_ddl_socket_connect(m->launch->host, m->launch->port, deadline,
                                                    patience(m), &m->files[0]);
        if (status == NULL) return NULL;
        if (bel_clock_ns() - begun > m->timeout_ns) {
            bel_status *late =
                BEL_ERR(BEL_DEADLINE_EXCEEDED, "rank 0 of %d has not come within %g s: %s",
                        m->own.size, seconds(m), bel_status_message(status));
            bel_status_destroy(status);
            return late;
        }
        bel_status_ignore(status); // it may appear later
        (void)poll(NULL, 0, LOOK_MS);
    }
}

// Listens at the local address of the connection to rank 0, because others can reach this rank
// there. On rank 0's host that may be a loopback address, which other hosts cannot reach; then it
// listens at all addresses.
static bel_status *greet_zero(meeting *m)
{
    char host[BEL_DDL_ADDRESS_TEXT];
    int port;
    const char *why;
    bel_ddl_socket_address(m->files[0], false, host);
    bool hidden = bel_linux_host_is_loopback(host) && !bel_linux_host_is_loopback(m->launch->host);
    BEL_TRY(bel_ddl_socket_listen(hidden ? NULL : host, 0, &m->listener, &port));
    m->own.port = port;
    int64_t deadline = bel_clock_awake_ns() + m->timeout_ns;
    if (!bel_ddl_socket_send_all(m->files[0], &m->own, sizeof m->own, deadline, &why))
        return lost_zero(m, why);
    return NULL;
}

static bel_status *hear_zero(const meeting *m, answer *out)
{
    // Rank 0 may have started its wait just now; it knows which rank is missing.
    int64_t deadline = bel_clock_awake_ns() + m->timeout_ns + SECOND_NS;
    const char *why;
    if (!bel_ddl_socket_receive_all(m->files[0], out, sizeof *out, deadline, &why))
        return lost_zero(m, why);
    if (memcmp(out->kind, KIND, sizeof KIND) != 0)
        return lost_zero(m, "it is another program, or another version of Belfry's");
    if (out->code == BEL_OK) return NULL;
    out->text[sizeof out->text - 1] = '\0';
    return BEL_ERR((bel_code)out->code, "%s", out->text);
}

static bel_status *greet_lower(meeting *m, answer *where)
{
    int64_t deadline = bel_clock_awake_ns() + m->timeout_ns;
    const char *why;
    for (int r = 1; r < m->own.rank; r++) {
        where->ranks[r].host[BEL_DDL_ADDRESS_TEXT - 1] = '\0';
        const char *host = where->ranks[r].host[0] == '\0' ? m->launch->host : where->ranks[r].host;
        BEL_TRY_CTX(
            bel_ddl_socket_connect(host, where->ranks[r].port, deadline, patience(m), &m->files[r]),
            "rank %d of %d cannot be reached", r, m->own.size);
        if (!bel_ddl_socket_send_all(m->files[r], &m->own, sizeof m->own, deadline, &why)) {
            return BEL_ERR(BEL_ABORTED, "rank %d of %d has exited before all had come: %s", r,
                           m->own.size, why);
        }
    }
    return NULL;
}

static bel_status *meet_others(meeting *m, int *out_together)
{
    answer where;
    BEL_TRY(find_zero(m));
    BEL_TRY(greet_zero(m));
    BEL_TRY(hear_zero(m, &where));
    bool fits = where.together >= 1 && m->own.size % where.together == 0;
    *out_together = fits ? where.together : 1;
    BEL_TRY(greet_lower(m, &where));
    return collect(m);
}

// --- Both ----------------------------------------------------------------------------------------

static bel_status *meet_begin(const bel_launch *launch, const char *settings, meeting *m)
{
    char *secret;
    m->own = (hello){.rank = launch->rank,
                     .size = launch->size,
                     .local_rank = launch->local_rank,
                     .local_size = launch->local_size,
                     .job = bel_hash64(launch->job, strlen(launch->job))};
    memcpy(m->own.kind, KIND, sizeof KIND);
    bel_snprintf(m->own.settings, sizeof m->own.settings, "%s", settings);
    if (launch->host[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "ranks that do not share memory: expected BELFRY_ADDRESS=HOST:PORT in "
                       "the environment of all ranks, where rank 0 can listen");
    }
    BEL_TRY(bel_secret_from_environment(&secret));
    bool open = secret[0] == '\0';
    bel_snprintf(m->own.secret, sizeof m->own.secret, "%s", secret);
    bel_free(secret);
    if (!open || bel_linux_host_is_loopback(launch->host)) return NULL;
    char port[16];
    bel_snprintf(port, sizeof port, "%d", launch->port);
    return BEL_ERR(BEL_INVALID_ARGUMENT, BEL_SECRET_MISSING, (int)strlen(launch->host),
                   launch->host, port);
}

bel_status *bel_ddl_meet(const bel_launch *launch, const char *settings, double timeout_secs,
                         bel_ddl_meeting *out)
{
    meeting *m = bel_xcalloc(1, sizeof *m);
    m->launch = launch;
    m->listener = -1;
    m->timeout_ns = (int64_t)(timeout_secs * 1e9);
    for (int r = 0; r < BEL_DDL_MAX_RANKS; r++)
        m->files[r] = -1;
    bel_status *status = meet_begin(launch, settings, m);
    if (status == NULL) {
        status = launch->rank == 0 ? be_met(m, &out->together) : meet_others(m, &out->together);
    }
    for (int i = 0; i < m->waiting_count; i++)
        (void)close(m->waiting[i].file);
    if (m->listener >= 0) (void)close(m->listener);
    for (int r = 0; r < BEL_DDL_MAX_RANKS && status != NULL; r++)
        if (m->files[r] >= 0) (void)close(m->files[r]);
    memcpy(out->files, m->files, sizeof out->files);
    bel_free(m);
    return status;
}
