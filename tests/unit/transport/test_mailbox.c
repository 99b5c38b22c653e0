// Mailboxes: the last messages of a peer that closes arrive.
#include "base/clock.h"
#include "support/bel_test.h"
#include "support/message.h"
#include "transport/streams/mailbox.h"

enum { SOON_SECONDS = 20, WORDS = 300 };

typedef struct fixture {
    bel_endpoint *server, *client;
    bel_doorbell *bell;
    _Atomic(bel_mailbox *) caller;
} fixture;

static bel_status *accept_caller(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    fixture *f = context;
    (void)path;
    f->caller = bel_mailbox_accept(stream, f->bell, out_events);
    return NULL;
}

// Returns the caller's next message; NULL after the last one.
static Bel__Message *take(fixture *f)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_clock_ns() < deadline) {
        bel_mailbox *caller = f->caller;
        Bel__Message *message = caller != NULL ? bel_mailbox_take(caller) : NULL;
        if (message != NULL) return message;
        if (caller != NULL && bel_mailbox_is_over(caller)) return NULL;
        (void)bel_doorbell_wait(f->bell, bel_clock_ns() + 1000000);
    }
    fail_msg("the caller stays");
    return NULL;
}

// The messages are in transit when the mailbox closes; the other side takes one after the other.
static void test_last_words(void **state)
{
    (void)state;
    fixture f = {.bell = bel_doorbell_create()};
    bel_endpoint_config config = {
        .listen_address = "127.0.0.1:0", .secret = "s", .accept = accept_caller, .context = &f};
    BEL_ASSERT_OK(bel_endpoint_create(&config, &f.server));
    config.listen_address = NULL;
    BEL_ASSERT_OK(bel_endpoint_create(&config, &f.client));
    bel_mailbox *mailbox = bel_mailbox_open(f.client, bel_endpoint_address(f.server), f.bell);
    for (int i = 0; i < WORDS; i++)
        bel_mailbox_send(mailbox, 0, BEL_TEST_KIND(Progress, progress, .step = i));
    bel_mailbox_close(mailbox, SOON_SECONDS * 1000);
    int64_t heard = 0;
    for (Bel__Message *word; (word = take(&f)) != NULL; heard++) {
        assert_int_equal(word->kind_case, BEL__MESSAGE__KIND_PROGRESS);
        assert_int_equal(word->progress->step, heard);
        bel_message_destroy(word);
    }
    assert_int_equal(heard, WORDS);
    bel_mailbox_close(f.caller, 0);
    bel_endpoint_destroy(f.client);
    bel_endpoint_destroy(f.server);
    bel_doorbell_destroy(f.bell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_last_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
