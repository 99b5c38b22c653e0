// Mailboxes: who says its last words and goes is heard.
#include "base/clock.h"
#include "support/bel_test.h"
#include "transport/grpc/mailbox.h"

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

// The caller's next message; false once there is none any more.
static bool take(fixture *f, bel_message *out_message)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_clock_ns() < deadline) {
        bel_mailbox *caller = f->caller;
        if (caller != NULL && bel_mailbox_take(caller, out_message)) return true;
        if (caller != NULL && bel_mailbox_is_over(caller)) return false;
        (void)bel_doorbell_wait(f->bell, bel_clock_ns() + 1000000);
    }
    fail_msg("the caller stays");
    return false;
}

// The messages are under way when the mailbox is closed; the other side takes one after the other.
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
        bel_mailbox_send(mailbox, &(bel_message){.kind = BEL_MESSAGE_PROGRESS, .step = i});
    bel_mailbox_close(mailbox, SOON_SECONDS * 1000);
    bel_message word;
    int64_t heard = 0;
    for (; take(&f, &word); heard++) {
        assert_int_equal(word.step, heard);
        bel_message_deinit(&word);
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
