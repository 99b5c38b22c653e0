// A list with a lock. Callers are taken out of the list while they are heard: `sit` runs without
// the mutex, so the endpoint's thread, which adds callers, never waits for the master's.
//
// A refusal is kept until it is sent: a blind caller may join again on the same stream, and the
// newer answer counts. A silent caller stays until its stream ends. Sending a refusal may delay the
// master's thread for LINGER_MS.
#include "master/members/callers.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { LINGER_MS = 500 }; // time to deliver a refusal

typedef struct caller {
    struct caller *next;
    bel_mailbox *mailbox;
    bel_status *refusal; // refusal of its last message; NULL: it has not sent anything
    bool blind;          // cannot access the model folder yet
    int64_t blind_ns;    // since when
} caller;

struct bel_callers {
    bel_caller_sit *sit;
    void *context;
    pthread_mutex_t mutex; // guards the list
    caller *first;
};

bel_callers *bel_callers_create(bel_caller_sit *sit, void *context)
{
    bel_callers *callers = bel_xcalloc(1, sizeof *callers);
    callers->sit = sit;
    callers->context = context;
    pthread_mutex_init(&callers->mutex, NULL);
    return callers;
}

void bel_callers_destroy(bel_callers *callers)
{
    while (callers->first != NULL) {
        caller *c = callers->first;
        callers->first = c->next;
        bel_mailbox_close(c->mailbox, 0);
        bel_status_ignore(c->refusal); // no longer needed
        bel_free(c);
    }
    pthread_mutex_destroy(&callers->mutex);
    bel_free(callers);
}

static void callers_put(bel_callers *callers, caller *c)
{
    pthread_mutex_lock(&callers->mutex);
    c->next = callers->first;
    callers->first = c;
    pthread_mutex_unlock(&callers->mutex);
}

void bel_callers_add(bel_callers *callers, bel_mailbox *mailbox)
{
    caller *c = bel_xcalloc(1, sizeof *c);
    c->mailbox = mailbox;
    callers_put(callers, c);
}

// Gives the caller its seat, or sets c->refusal.
static void take_word(bel_callers *callers, caller *c, const Bel__Message *word)
{
    bool joins = word->kind_case == BEL__MESSAGE__KIND_JOIN;
    if (c->blind && !joins) return; // it repeats the message after joining
    bel_status_ignore(c->refusal);  // it joins again
    c->refusal =
        joins
            ? callers->sit(callers->context, c->mailbox, word->join, word->generation, &c->blind)
            : BEL_ERR(BEL_INVALID_ARGUMENT, "expected a join, got %s", bel_message_kind_name(word));
    if (c->refusal == NULL) c->mailbox = NULL; // owned by the member
    if (c->blind && c->blind_ns == 0) c->blind_ns = bel_clock_awake_ns();
}

// Whether the caller can leave the list. False: it has not introduced itself, or may still get
// access to the model folder.
static bool is_through(const caller *c, int64_t patience_ns, int64_t until_ns)
{
    int64_t now = bel_clock_awake_ns();
    if (c->mailbox == NULL || c->refusal == NULL) return c->mailbox == NULL;
    return !c->blind || now - c->blind_ns >= patience_ns || now >= until_ns;
}

// Takes the caller's messages, or detects that it has disconnected.
static void callers_hear(bel_callers *callers, caller *c)
{
    Bel__Message *word = bel_mailbox_take(c->mailbox);
    if (word != NULL) {
        take_word(callers, c, word);
        bel_message_destroy(word);
    } else if (bel_mailbox_is_over(c->mailbox)) {
        bel_mailbox_close(c->mailbox, 0);
        bel_status_ignore(c->refusal); // no longer matters
        c->mailbox = NULL;
        c->refusal = NULL;
    }
}

// Returns the reason for the refusal, or NULL.
static bel_status *caller_dismiss(caller *c)
{
    bel_status *refusal = c->refusal;
    if (c->mailbox != NULL) {
        bel_mailbox_refuse(c->mailbox, bel_status_code(refusal), bel_status_message(refusal));
        bel_mailbox_close(c->mailbox, LINGER_MS);
    }
    bel_free(c);
    return refusal;
}

// The master's thread owns the whole list meanwhile; callers added during this are heard next time.
bel_status *bel_callers_hear(bel_callers *callers, int64_t patience_ns, int64_t until_ns,
                             bool joining)
{
    pthread_mutex_lock(&callers->mutex);
    caller *list = callers->first;
    callers->first = NULL;
    pthread_mutex_unlock(&callers->mutex);
    bel_status *first = NULL;
    while (list != NULL) {
        caller *c = list;
        list = c->next;
        callers_hear(callers, c);
        if (!is_through(c, patience_ns, until_ns)) {
            callers_put(callers, c);
            continue;
        }
        bel_status *status = caller_dismiss(c);
        bel_code code = bel_status_code(status);
        bool counts = code != BEL_ALREADY_EXISTS && code != BEL_INVALID_ARGUMENT;
        if (status != NULL && joining && counts && first == NULL) {
            first = status;
        } else if (status != NULL) {
            bel_log_write(BEL_LOG_WARN, "refused: %s", bel_status_message(status));
            bel_status_destroy(status);
        }
    }
    return first;
}
