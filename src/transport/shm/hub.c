// One thread for all sockets of a process. No peer is trusted to be quick: sockets never block.
// Whenever one of them has data, all are checked, since that happens only when lanes begin and end.
//
// The mutex guards the links, with their sockets; strangers belong to the thread. Only the thread
// closes sockets: a socket that it may be polling is shut down and kept until its next round.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "transport/shm/shm_inner.h"
#include "transport/streams/local_socket.h"

enum {
    MOST_STRANGERS = 64,
    HELLO_MS = 1000, // time for a stranger's introduction
    RETRY_MS = 5,    // the first pause before another call, and the longest
    MOST_RETRY_MS = 250,
    CLOSE_MS = 1000,
    DEAF_MS = 50, // pause after a connection could not be accepted, for lack of descriptors
};

static const char magic[4] = "BELS";

_Static_assert(sizeof(bel_shm_message) == 36 + BEL_SHM_SECRET_BYTES + BEL_SHM_TEXT_BYTES,
               "the message has no holes");

// A peer that has connected but has not yet named its lane.
typedef struct stranger {
    bel_shm_talk talk;
    int64_t deadline_ns;
} stranger;

struct bel_shm_hub {
    char *address; // NULL: it does not listen
    char secret[BEL_SHM_SECRET_BYTES];
    bel_lane_find *find;
    void *context;
    int listener, event;
    pthread_t thread;
    stranger strangers[MOST_STRANGERS]; // only for the thread
    int stranger_count;
    int64_t deaf_until_ns;
    struct pollfd *polled; // only for the thread
    size_t polled_capacity;
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t changed;
    bel_shm_link *links;
    int *discarded; // sockets to close
    size_t discarded_count, discarded_capacity;
    bool stopping;
};

static int64_t after_ms(int64_t ms)
{
    return bel_clock_ns() + ms * 1000000;
}

// --- Talks ---------------------------------------------------------------------------------------

typedef enum talk_state { TALK_GOES_ON, TALK_COMPLETE, TALK_OVER } talk_state;

// Reads the available part of one message, without blocking; a message may arrive in pieces.
static talk_state listen_to(bel_shm_talk *talk)
{
    while (talk->received < sizeof talk->message) {
        ssize_t got = bel_linux_socket_receive(
            talk->socket, (uint8_t *)&talk->message + talk->received,
            sizeof talk->message - talk->received, talk->descriptors, &talk->descriptor_count);
        if (got < 0 && errno == EAGAIN) return TALK_GOES_ON;
        if (got <= 0) return TALK_OVER;
        talk->received += (size_t)got;
    }
    return TALK_COMPLETE;
}

// Closes unclaimed descriptors, and makes room for the next message.
static void forget_message(bel_shm_talk *talk)
{
    while (talk->descriptor_count > 0)
        close(talk->descriptors[--talk->descriptor_count]);
    talk->received = 0;
}

// Compares all bytes whatever the first difference, so that timing reveals nothing.
static bool shows_secret(const bel_shm_hub *hub, const bel_shm_message *message)
{
    unsigned difference = 0;
    for (size_t i = 0; i < sizeof hub->secret; i++)
        difference |= (unsigned)((unsigned char)hub->secret[i] ^ (unsigned char)message->secret[i]);
    return difference == 0;
}

// A message fits into an empty socket's buffer, so it is sent completely or not at all.
static bool send_message(bel_shm_hub *hub, int socket, bel_shm_message *message,
                         const int *descriptors, int count)
{
    memcpy(message->magic, magic, sizeof magic);
    message->version = BEL_SHM_VERSION;
    if (message->code == BEL_OK) memcpy(message->secret, hub->secret, sizeof hub->secret);
    return bel_linux_socket_send(socket, message, sizeof *message, descriptors, count);
}

// Checks magic, version and secret, in this order; a refusal has no secret.
static bel_status *check_message(const bel_shm_hub *hub, const bel_shm_message *message)
{
    if (memcmp(message->magic, magic, sizeof magic) != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed introduction");
    }
    if (message->version != BEL_SHM_VERSION) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "version %u of shared memory lanes, expected %d",
                       (unsigned)message->version, BEL_SHM_VERSION);
    }
    if (message->code == BEL_OK && !shows_secret(hub, message)) {
        return BEL_ERR(BEL_UNAUTHENTICATED, "the peer does not show this job's secret");
    }
    return NULL;
}

// --- Links ---------------------------------------------------------------------------------------

// Releases a socket. The peer sees its end now. The hub's thread closes it later, as it may be
// polling the descriptor, whose number must not be reused until then.
static void discard_locked(bel_shm_hub *hub, bel_shm_talk *talk)
{
    forget_message(talk);
    if (talk->socket < 0) return;
    (void)shutdown(talk->socket, SHUT_RDWR);
    hub->discarded = bel_xgrow(hub->discarded, &hub->discarded_capacity, hub->discarded_count + 1,
                               sizeof *hub->discarded);
    hub->discarded[hub->discarded_count++] = talk->socket;
    talk->socket = -1;
}

// Ends a link for good: its lane is cut.
static void end_link_locked(bel_shm_hub *hub, bel_shm_link *link, const char *reason)
{
    discard_locked(hub, &link->talk);
    link->over = true;
    bel_shm_lane_cut(link->lane, reason);
}

// The other end is not ready yet; the hub's thread tries again later.
static void retry_locked(bel_shm_hub *hub, bel_shm_link *link)
{
    link->unheard_ns = 0;
    discard_locked(hub, &link->talk);
    link->try_at_ns = bel_clock_ns() + bel_backoff_next(&link->backoff);
}

// Nothing listens there, or the call ended without an answer: with a bound this may end the link.
static void call_again_locked(bel_shm_hub *hub, bel_shm_link *link, const char *why)
{
    int64_t now = bel_clock_awake_ns(), begun = link->unheard_ns != 0 ? link->unheard_ns : now;
    if (link->patience_ns > 0 && now - begun >= link->patience_ns) {
        atomic_store(&link->unheard, true);
        end_link_locked(hub, link, why);
        return;
    }
    retry_locked(hub, link);
    link->unheard_ns = begun;
}

static void fail_link_locked(bel_shm_hub *hub, bel_shm_link *link, bel_status *status)
{
    end_link_locked(hub, link, bel_status_message(status));
    bel_status_ignore(status); // it is the reason of the cut
}

// The opening end's introduction: connects, checks the listener's user, sends its message.
static void call_locked(bel_shm_hub *hub, bel_shm_link *link)
{
    bel_status *status = bel_local_connect(link->address, &link->talk.socket);
    if (bel_status_code(status) == BEL_INVALID_ARGUMENT) {
        fail_link_locked(hub, link, status);
        return;
    }
    if (status != NULL) {
        call_again_locked(hub, link, bel_status_message(status));
        bel_status_ignore(status); // no process listens yet, or it is the reason of the cut
        return;
    }
    if (!bel_linux_socket_is_own_user(link->talk.socket)) {
        end_link_locked(hub, link, "another user listens at its path");
        return;
    }
    bel_shm_message message = {.hello = link->hello};
    int descriptors[BEL_LINUX_DESCRIPTORS], count = 0;
    bel_shm_lane_describe(link->lane, &message, descriptors, &count);
    if (!send_message(hub, link->talk.socket, &message, descriptors, count))
        call_again_locked(hub, link, "its introduction cannot be sent");
}

// Handles the waiting end's answer: not yet, never, or its side of the lane.
static void take_answer_locked(bel_shm_hub *hub, bel_shm_link *link)
{
    bel_shm_message *message = &link->talk.message;
    bel_status *status = check_message(hub, message);
    if (status == NULL && message->code == BEL_SHM_NOT_YET) {
        retry_locked(hub, link);
        return;
    }
    if (status == NULL && message->code != BEL_OK) {
        message->text[sizeof message->text - 1] = '\0';
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "refused: %s", message->text);
    }
    if (status == NULL) status = bel_shm_lane_attach(link->lane, &link->talk);
    if (status != NULL) {
        fail_link_locked(hub, link, status);
        return;
    }
    forget_message(&link->talk);
    link->introduced = true;
}

// After the introduction a peer sends nothing more: only the end of its socket can come.
static void watch_locked(bel_shm_hub *hub, bel_shm_link *link)
{
    char byte;
    ssize_t got = recv(link->talk.socket, &byte, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    end_link_locked(hub, link, got > 0 ? "malformed introduction" : "its other end has closed");
}

// Serves a link, on the hub's thread or in bel_shm_hub_add: calls, reads an answer, or watches.
static void serve_link_locked(bel_shm_hub *hub, bel_shm_link *link)
{
    if (link->over) return;
    if (link->talk.socket < 0) {
        bool due = link->address != NULL && bel_clock_ns() >= link->try_at_ns;
        if (due) call_locked(hub, link);
        return;
    }
    if (!link->introduced) {
        switch (listen_to(&link->talk)) {
        case TALK_GOES_ON: return;
        case TALK_OVER: call_again_locked(hub, link, "calls end without an answer"); return;
        case TALK_COMPLETE: take_answer_locked(hub, link); break;
        }
    }
    if (link->introduced && !link->over) watch_locked(hub, link);
}

// --- Strangers -----------------------------------------------------------------------------------

// Accepts waiting connections, up to the limit; the rest stay in the listener's queue.
static void accept_strangers(bel_shm_hub *hub)
{
    while (hub->listener >= 0 && hub->stranger_count < MOST_STRANGERS) {
        int socket = bel_local_accept(hub->listener);
        if (socket < 0 && errno != EAGAIN) hub->deaf_until_ns = after_ms(DEAF_MS);
        if (socket < 0) return;
        if (!bel_linux_socket_is_own_user(socket)) {
            close(socket);
            continue;
        }
        hub->strangers[hub->stranger_count++] =
            (stranger){.talk = {.socket = socket}, .deadline_ns = after_ms(HELLO_MS)};
    }
}

// A lane may have been closed since it was found.
static bel_shm_link *link_of_locked(const bel_shm_hub *hub, const bel_lane *lane)
{
    bel_shm_link *link = lane != NULL ? hub->links : NULL;
    while (link != NULL && link->lane != lane)
        link = link->next;
    return link;
}

// The stranger becomes the peer of a lane, whose link takes its socket.
static bel_status *introduce_locked(bel_shm_hub *hub, stranger *s, bel_shm_link *link)
{
    if (link->over || link->introduced || link->address != NULL) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "that lane has, or had, a peer already");
    }
    BEL_TRY(bel_shm_lane_attach(link->lane, &s->talk));
    link->talk = (bel_shm_talk){.socket = s->talk.socket};
    link->introduced = true;
    s->talk.socket = -1;
    bel_shm_message answer = {.code = BEL_OK};
    int descriptors[BEL_LINUX_DESCRIPTORS], count = 0;
    bel_shm_lane_describe(link->lane, &answer, descriptors, &count);
    if (!send_message(hub, link->talk.socket, &answer, descriptors, count)) {
        end_link_locked(hub, link, "its other end does not listen");
    }
    return NULL;
}

// Refuses: status NULL means not yet, and the peer tries again.
static void shm_hub_refuse(bel_shm_hub *hub, const stranger *s, const bel_status *status)
{
    bel_shm_message answer = {.code = BEL_SHM_NOT_YET};
    if (status != NULL) {
        answer.code = (int32_t)bel_status_code(status);
        bel_snprintf(answer.text, sizeof answer.text, "%s", bel_status_message(status));
    }
    (void)send_message(hub, s->talk.socket, &answer, NULL,
                       0); // a peer that does not listen learns nothing
}

// A stranger's message is complete: finds its lane, or refuses it. Only an introduction takes the
// socket; afterwards the stranger is removed either way.
static void answer_stranger(bel_shm_hub *hub, stranger *s)
{
    const bel_shm_message *message = &s->talk.message;
    bel_lane *lane = NULL;
    bel_status *status = check_message(hub, message);
    if (status == NULL && message->code != BEL_OK) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "malformed introduction");
    }
    pthread_mutex_lock(&hub->mutex); // a lane found here cannot be closed before it has its peer
    if (status == NULL && hub->find != NULL) {
        status = hub->find(hub->context, &message->hello, &lane);
    }
    bel_shm_link *link = status == NULL ? link_of_locked(hub, lane) : NULL;
    if (link != NULL) status = introduce_locked(hub, s, link);
    pthread_mutex_unlock(&hub->mutex);
    if (s->talk.socket >= 0) shm_hub_refuse(hub, s, status);
    bel_status_ignore(status); // the stranger was notified
}

static void end_stranger(stranger *s)
{
    forget_message(&s->talk);
    if (s->talk.socket >= 0) close(s->talk.socket);
    s->talk.socket = -1;
}

// Keeps strangers that are within their time, in their order; ends the others.
static void serve_strangers(bel_shm_hub *hub)
{
    accept_strangers(hub);
    int kept = 0;
    for (int i = 0; i < hub->stranger_count; i++) {
        stranger *s = &hub->strangers[i];
        talk_state state = listen_to(&s->talk);
        if (state == TALK_COMPLETE) answer_stranger(hub, s);
        if (state == TALK_GOES_ON && bel_clock_ns() < s->deadline_ns) {
            hub->strangers[kept++] = *s;
        } else {
            end_stranger(s);
        }
    }
    hub->stranger_count = kept;
}

// --- The thread ----------------------------------------------------------------------------------

static void poll_for(bel_shm_hub *hub, size_t *count, int descriptor)
{
    hub->polled = bel_xgrow(hub->polled, &hub->polled_capacity, *count + 1, sizeof *hub->polled);
    hub->polled[(*count)++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
}

// Collects the descriptors to poll; *out_wake_ns becomes the next due time.
static size_t prepare_poll_locked(bel_shm_hub *hub, int64_t *out_wake_ns)
{
    size_t count = 0;
    int64_t wake_ns = INT64_MAX;
    poll_for(hub, &count, hub->event);
    bool room = hub->stranger_count < MOST_STRANGERS, deaf = bel_clock_ns() < hub->deaf_until_ns;
    if (deaf) wake_ns = hub->deaf_until_ns;
    if (hub->listener >= 0 && room && !deaf) poll_for(hub, &count, hub->listener);
    for (int i = 0; i < hub->stranger_count; i++) {
        const stranger *s = &hub->strangers[i];
        poll_for(hub, &count, s->talk.socket);
        if (s->deadline_ns < wake_ns) wake_ns = s->deadline_ns;
    }
    for (const bel_shm_link *link = hub->links; link != NULL; link = link->next) {
        if (link->talk.socket >= 0) poll_for(hub, &count, link->talk.socket);
        bool waits = link->talk.socket < 0 && link->address != NULL && !link->over;
        if (waits && link->try_at_ns < wake_ns) wake_ns = link->try_at_ns;
    }
    *out_wake_ns = wake_ns;
    return count;
}

// Rounded up, so that the due work is due when the thread wakes.
static int poll_timeout_ms(int64_t wake_ns)
{
    if (wake_ns == INT64_MAX) return -1;
    int64_t left_ns = wake_ns - bel_clock_ns();
    return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

static void close_discarded_locked(bel_shm_hub *hub)
{
    while (hub->discarded_count > 0)
        close(hub->discarded[--hub->discarded_count]);
}

// The hub's thread. It polls without the lock: only this thread closes the polled sockets, and a
// thread that changes the links signals the event. Each round signals `changed`, for removals that
// linger.
static void *hub_main(void *argument)
{
    bel_shm_hub *hub = argument;
    bool stopping = false;
    while (!stopping) {
        serve_strangers(hub);
        pthread_mutex_lock(&hub->mutex);
        for (bel_shm_link *link = hub->links; link != NULL; link = link->next)
            serve_link_locked(hub, link);
        pthread_cond_broadcast(&hub->changed);
        close_discarded_locked(hub);
        int64_t wake_ns;
        size_t count = prepare_poll_locked(hub, &wake_ns);
        stopping = hub->stopping;
        pthread_mutex_unlock(&hub->mutex);
        if (!stopping) (void)poll(hub->polled, count, poll_timeout_ms(wake_ns));
        (void)bel_linux_event_take(hub->event);
    }
    for (int i = 0; i < hub->stranger_count; i++)
        end_stranger(&hub->strangers[i]);
    return NULL;
}

// --- For lanes -----------------------------------------------------------------------------------

void bel_shm_hub_add(bel_shm_hub *hub, bel_shm_link *link)
{
    link->backoff = (bel_backoff){.least_ns = RETRY_MS * INT64_C(1000000),
                                  .most_ns = MOST_RETRY_MS * INT64_C(1000000)};
    pthread_mutex_lock(&hub->mutex);
    link->next = hub->links;
    hub->links = link;
    serve_link_locked(hub, link); // calls at once: even a lane that closes soon is introduced
    pthread_mutex_unlock(&hub->mutex);
    bel_linux_event_signal(hub->event);
}

void bel_shm_hub_remove(bel_shm_hub *hub, bel_shm_link *link, bool linger)
{
    int64_t deadline_ns = after_ms(CLOSE_MS);
    pthread_mutex_lock(&hub->mutex);
    bool in_time = linger;
    while (in_time && link->talk.socket >= 0 && !link->introduced)
        in_time = bel_cond_wait_until(&hub->changed, &hub->mutex, deadline_ns);
    bel_shm_link **place = &hub->links;
    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
    discard_locked(hub, &link->talk);
    pthread_mutex_unlock(&hub->mutex);
    bel_linux_event_signal(hub->event);
}

void bel_shm_hub_drop(bel_shm_hub *hub, bel_shm_link *link)
{
    pthread_mutex_lock(&hub->mutex);
    link->over = true;
    discard_locked(hub, &link->talk);
    pthread_mutex_unlock(&hub->mutex);
    bel_linux_event_signal(hub->event);
}

// --- The hub -------------------------------------------------------------------------------------

// Starts the thread last, after everything that it uses.
static bel_status *open_hub(bel_shm_hub *hub, const bel_shm_hub_config *config)
{
    size_t length = strlen(config->secret);
    if (length > sizeof hub->secret) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the secret has %zu bytes, the limit is %zu", length,
                       sizeof hub->secret);
    }
    memcpy(hub->secret, config->secret, length);
    hub->event = bel_linux_event_create();
    if (hub->event < 0) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot make an event: %s", strerror(errno));
    }
    if (config->listen_path != NULL) {
        char *address = bel_strf("unix:%s", config->listen_path);
        bel_status *status = bel_local_listen(address, &hub->listener);
        if (status != NULL) {
            bel_free(address);
            return status;
        }
        hub->address = address;
    }
    return bel_thread_start(&hub->thread, hub_main, hub);
}

static void free_hub(bel_shm_hub *hub)
{
    if (hub->address != NULL) bel_local_shut(hub->address, hub->listener);
    if (hub->listener >= 0) close(hub->listener);
    if (hub->event >= 0) close(hub->event);
    close_discarded_locked(hub);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->mutex);
    bel_free(hub->discarded);
    bel_free(hub->polled);
    bel_free(hub->address);
    bel_free(hub);
}

bel_status *bel_shm_hub_create(const bel_shm_hub_config *config, bel_shm_hub **out_hub)
{
    bel_shm_hub *hub = bel_xcalloc(1, sizeof *hub);
    hub->find = config->find;
    hub->context = config->context;
    hub->listener = hub->event = -1;
    pthread_mutex_init(&hub->mutex, NULL);
    bel_cond_init(&hub->changed);
    bel_status *status = open_hub(hub, config);
    if (status != NULL) {
        free_hub(hub);
        return status;
    }
    *out_hub = hub;
    return NULL;
}

void bel_shm_hub_destroy(bel_shm_hub *hub)
{
    if (hub == NULL) return;
    pthread_mutex_lock(&hub->mutex);
    hub->stopping = true;
    pthread_mutex_unlock(&hub->mutex);
    bel_linux_event_signal(hub->event);
    pthread_join(hub->thread, NULL);
    free_hub(hub);
}
