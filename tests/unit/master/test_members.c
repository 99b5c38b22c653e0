// Membership: joining, refusals that name the difference, statuses, lost members, dismissal. The
// members are mailboxes of this process. The tests wait on clocks only as distant deadlines.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "master/members/members.h"
#include "support/bel_test.h"
#include "support/message.h"
#include "transport/streams/mailbox.h"

enum { SOON_SECONDS = 20, PEERS = 3, MOST_PEERS = 8 };

static char name_seed[] = "seed", value_one[] = "1", name_model[] = "param.model", value_x[] = "x";
static char *names[] = {name_seed, name_model}, *values[] = {value_one, value_x};

typedef struct fixture {
    bel_members *members;
    bel_endpoint *client;
    bel_doorbell *bell;
    bel_mailbox *peers[MOST_PEERS];
    int peer_count;
} fixture;

static bel_status *accept_nothing(void *context, const char *path, bel_stream *stream,
                                  bel_stream_events *out_events)
{
    (void)context, (void)stream, (void)out_events;
    return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
}

static bool go_on(void *context)
{
    (void)context;
    return false;
}

static bool stop_now(void *context)
{
    (void)context;
    return true;
}

static fixture set_up_with(double join_secs, bool recovers, double folder_secs)
{
    fixture f = {0};
    const bel_members_config config = {
        .endpoint = {.listen_address = "127.0.0.1:0", .secret = "s", .accept = accept_nothing},
        .counts = {[BEL_ROLE_WORKER] = 2, [BEL_ROLE_PS] = 1},
        .wanted_workers = 2,
        .token = "token",
        .folder_patience_secs = folder_secs,
        .join_timeout_secs = join_secs,
        .silence_timeout_secs = SOON_SECONDS,
        .recovers = recovers};
    BEL_ASSERT_OK(bel_members_create(&config, &f.members));
    const bel_endpoint_config client = {.secret = "s", .accept = accept_nothing};
    BEL_ASSERT_OK(bel_endpoint_create(&client, &f.client));
    f.bell = bel_doorbell_create();
    return f;
}

static fixture set_up(double join_secs)
{
    return set_up_with(join_secs, false, 0);
}

static void tear_down(fixture *f)
{
    for (int i = 0; i < f->peer_count; i++)
        bel_mailbox_close(f->peers[i], 0);
    bel_members_destroy(f->members);
    bel_endpoint_destroy(f->client);
    bel_doorbell_destroy(f->bell);
}

static const bel_join_graph graph = {
    .names = names, .values = values, .setting_count = 2, .collectives = "a\nb\n"};

static Bel__Join good_join(bel_role role, int index)
{
    static char collectives[] = "a\nb\n";
    static char version[64], host[] = "host-a", token[] = "token", served[] = "unix:/x";
    static Bel__Setting settings[2], *list[] = {&settings[0], &settings[1]};
    for (int i = 0; i < 2; i++) {
        bel__setting__init(&settings[i]);
        settings[i].name = i == 0 ? name_seed : name_model;
        settings[i].value = i == 0 ? value_one : value_x;
    }
    snprintf(version, sizeof version, "%s", bel_version());
    Bel__Join join;
    bel__join__init(&join);
    join.protocol = BEL_PROTOCOL_VERSION;
    join.version = version;
    join.role = (int32_t)role;
    join.index = index;
    join.host = host;
    join.pid = 99;
    join.address = served;
    join.token = token;
    join.settings = list;
    join.n_settings = 2;
    join.collectives = collectives;
    return join;
}

// A member that holds the state of a generation; 0: no state.
static bel_mailbox *call_holding(fixture *f, uint32_t generation, const Bel__Join *join)
{
    bel_mailbox *peer = bel_mailbox_open(
        f->client, bel_endpoint_address(bel_members_endpoint(f->members)), f->bell);
    bel_mailbox_send(peer, generation, &join->base);
    f->peers[f->peer_count++] = peer;
    return peer;
}

static bel_mailbox *call(fixture *f, const Bel__Join *join)
{
    return call_holding(f, 0, join);
}

static void call_all(fixture *f)
{
    const Bel__Join joins[PEERS] = {good_join(BEL_ROLE_PS, 0), good_join(BEL_ROLE_WORKER, 0),
                                    good_join(BEL_ROLE_WORKER, 1)};
    for (int i = 0; i < PEERS; i++)
        call(f, &joins[i]);
    BEL_ASSERT_OK(bel_members_gather(f->members, &graph, go_on, NULL));
}

static void test_gather(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    int worker = bel_members_find(f.members, BEL_ROLE_WORKER, 1);
    const bel_member_view *member = bel_members_get(f.members, worker);
    assert_string_equal(member->host, "host-a");
    assert_string_equal(member->address, "unix:/x");
    assert_int_equal(member->pid, 99);
    assert_int_equal(bel_members_find(f.members, BEL_ROLE_WORKER, 2), -1);
    BEL_ASSERT_OK(bel_members_check(f.members));
    tear_down(&f);
}

// Sends one invalid join; the error names the fault.
static void refuse_with(Bel__Join join, bel_code code, const char *part)
{
    fixture f = set_up(SOON_SECONDS);
    bel_mailbox *peer = call(&f, &join);
    BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, go_on, NULL), code, part);
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (!bel_mailbox_is_over(peer) && bel_clock_ns() < deadline)
        (void)bel_doorbell_wait(f.bell, bel_clock_ns() + 1000000);
    BEL_ASSERT_FAILS(bel_mailbox_why(peer), code, part); // it receives the reason
    tear_down(&f);
}

static void refuse(Bel__Join join, const char *part)
{
    refuse_with(join, BEL_FAILED_PRECONDITION, part);
}

static void test_refusals(void **state)
{
    (void)state;
    static char other_version[] = "9.9.9", other_token[] = "another", none[] = "", two[] = "2";
    Bel__Join join = good_join(BEL_ROLE_WORKER, 0);
    join.protocol = BEL_PROTOCOL_VERSION + 1;
    refuse(join, "protocol");
    join = good_join(BEL_ROLE_WORKER, 0);
    join.version = other_version;
    refuse(join, "worker 0 on host-a runs belfry 9.9.9");
    join = good_join(BEL_ROLE_WORKER, 2);
    refuse_with(join, BEL_OUT_OF_RANGE,
                "worker 2 on host-a is no member of this job: it has 2 workers");
    join = good_join(BEL_ROLE_COUNT, 0);
    refuse(join, "no member");
    join = good_join(BEL_ROLE_PS, 0);
    join.token = other_token;
    refuse(join, "job.token there is another");
    join.token = none;
    refuse(join, "job.token is missing");
    join = good_join(BEL_ROLE_WORKER, 1);
    join.settings[0]->value = two;
    refuse(
        join,
        "worker 1 on host-a runs with other settings than the master: seed was 1 and is 2 there");
    join = good_join(BEL_ROLE_WORKER, 1);
    static char more[] = "a\nb\nc\n", other[] = "a\nc\nb\n";
    join.collectives = more;
    refuse(join, "collective 2 is c there and none here");
    join.collectives = other;
    refuse(join, "collective 1 is c there and b here");
    join = good_join(BEL_ROLE_WORKER, 1);
    join.settings[1]->name = other;
    refuse(join, "model was x and is not set there");
    join = good_join(BEL_ROLE_WORKER, 1);
    join.n_settings = 0;
    refuse(join, "seed was 1 and is not set there");
}

// A member that reads an old token, or none, may join again. After it has joined, a join is no
// message.
static void test_late_folder(void **state)
{
    (void)state;
    static char old[] = "old", none[] = "";
    fixture f = set_up_with(SOON_SECONDS, false, SOON_SECONDS);
    Bel__Join join = good_join(BEL_ROLE_PS, 0), blind = join;
    blind.token = none;
    bel_mailbox_close(call(&f, &blind), SOON_SECONDS * 1000); // causes no error
    f.peer_count = 0;
    bel_mailbox *peer = call(&f, &blind);
    blind.token = old;
    bel_mailbox_send(peer, 0, &blind.base);
    bel_mailbox_send(peer, 0, BEL_TEST_KIND(Status, status, .doing = old));
    bel_mailbox_send(peer, 0, &join.base);
    join.index = 0, join.role = BEL_ROLE_WORKER;
    call(&f, &join);
    join.index = 1;
    call(&f, &join);
    BEL_ASSERT_OK(bel_members_gather(f.members, &graph, go_on, NULL));
    join = good_join(BEL_ROLE_PS, 0);
    bel_mailbox_send(peer, 0, &join.base);
    bel_mailbox_send(peer, 0, BEL_TEST_KIND(Progress, progress, .step = 1));
    int member;
    Bel__Message *got;
    assert_true(bel_members_take(f.members, SOON_SECONDS, &member, &got));
    assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_PROGRESS);
    bel_message_destroy(got);
    tear_down(&f);
}

// A member that keeps seeing another folder is refused, although others are still missing.
static void test_another_folder(void **state)
{
    (void)state;
    static char old[] = "old";
    static const double join_secs[] = {SOON_SECONDS, 0.2}, folder_secs[] = {0.05, SOON_SECONDS};
    for (int i = 0; i < 2; i++) { // after the folder's timeout, or the common one
        fixture f = set_up_with(join_secs[i], false, folder_secs[i]);
        Bel__Join join = good_join(BEL_ROLE_WORKER, 1);
        join.token = old;
        call(&f, &join);
        BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, go_on, NULL),
                         BEL_FAILED_PRECONDITION, "worker 1 on host-a does not see");
        tear_down(&f);
    }
}

static void test_twice(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    Bel__Join join = good_join(BEL_ROLE_WORKER, 0);
    call(&f, &join);
    join.pid++;
    call(&f, &join);
    BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, go_on, NULL), BEL_FAILED_PRECONDITION,
                     "it is there already");
    tear_down(&f);
}

static void test_missing(void **state)
{
    (void)state;
    fixture f = set_up(0.2);
    Bel__Join join = good_join(BEL_ROLE_WORKER, 0);
    call(&f, &join);
    BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, go_on, NULL), BEL_DEADLINE_EXCEEDED,
                     "no word from ps 0, worker 1");
    tear_down(&f);
    f = set_up(SOON_SECONDS);
    BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, stop_now, NULL), BEL_CANCELLED,
                     "stopped");
    tear_down(&f);
}

static void test_messages(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    static char words[] = "waits for reports of worker 1";
    Bel__Device devices[3], *list[] = {&devices[0], &devices[1], &devices[2]};
    for (int d = 0; d < 3; d++) {
        bel__device__init(&devices[d]);
        devices[d].number = d == 0 ? 64 : d; // the first one is invalid
        devices[d].towers = d + 1;
        devices[d].taken = 100 * d;
    }
    bel_mailbox_send(
        f.peers[0], 0,
        BEL_TEST_KIND(Status, status, .step = 7, .doing = words, .devices = list, .n_devices = 3));
    bel_mailbox_send(f.peers[0], 0, BEL_TEST_KIND(Progress, progress, .step = 8));
    int member;
    Bel__Message *got;
    assert_true(bel_members_take(f.members, SOON_SECONDS, &member, &got));
    const bel_member_view *view = bel_members_get(f.members, member);
    assert_int_equal(view->device_count, 2);
    assert_int_equal(view->devices[1].number, 2);
    assert_int_equal(view->devices[1].towers, 3);
    assert_true(view->devices[0].taken == 100 && view->devices[1].taken == 200);
    assert_int_equal(got->kind_case,
                     BEL__MESSAGE__KIND_PROGRESS); // the status is stored, not returned
    assert_int_equal(got->progress->step, 8);
    assert_int_equal(member, bel_members_find(f.members, BEL_ROLE_PS, 0));
    bel_message_destroy(got);
    bel_str text = {0};
    bel_members_describe(f.members, &text);
    assert_non_null(strstr(text.text, "ps 0 waits for reports of worker 1 (step 7)"));
    bel_str_deinit(&text);
    assert_false(bel_members_take(f.members, 0, &member, &got));
    tear_down(&f);
}

// Like the summary of a checkpoint with many parameters: longer than a gRPC message may be.
static void test_long_message(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    enum { LONG = 5 * 1024 * 1024 + 7 };
    uint8_t *data = bel_xmalloc(LONG);
    for (int i = 0; i < LONG; i++)
        data[i] = (uint8_t)(i * 31 % 251);
    bel_mailbox_send(f.peers[0], 0,
                     BEL_TEST_KIND(Saved, saved, .step = 7, .part = {.data = data, .len = LONG}));
    bel_mailbox_send(f.peers[0], 0, BEL_TEST_KIND(Progress, progress, .step = 8));
    int member;
    Bel__Message *got;
    assert_true(bel_members_take(f.members, SOON_SECONDS, &member, &got));
    assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_SAVED);
    assert_int_equal(got->saved->part.len, LONG);
    assert_memory_equal(got->saved->part.data, data, LONG);
    bel_message_destroy(got);
    assert_true(bel_members_take(f.members, SOON_SECONDS, &member, &got));
    assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_PROGRESS);
    bel_message_destroy(got);
    bel_free(data);
    tear_down(&f);
}

// Returns the error that reports a lost member.
static bel_status *await_loss(fixture *f)
{
    bel_status *status = NULL;
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (status == NULL && bel_clock_ns() < deadline) {
        int member;
        Bel__Message *got;
        if (bel_members_take(f->members, 0.01, &member, &got)) bel_message_destroy(got);
        status = bel_members_check(f->members);
    }
    return status;
}

// Waits until the member's seat is taken, or empty.
static void await_place(fixture *f, int member, bool here)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_members_get(f->members, member)->here != here && bel_clock_ns() < deadline) {
        int sender;
        Bel__Message *got;
        if (bel_members_take(f->members, 0.01, &sender, &got)) bel_message_destroy(got);
        BEL_ASSERT_OK(bel_members_check(f->members));
    }
    assert_int_equal(bel_members_get(f->members, member)->here, here);
}

static void test_lost(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    bel_members_note_step(f.members, 41);
    bel_mailbox_close(f.peers[2], 0);
    f.peer_count = 2;
    BEL_ASSERT_FAILS(await_loss(&f), BEL_UNAVAILABLE,
                     "lost worker 1 on host-a (pid 99) after step 41");
    tear_down(&f);
}

// A member reports a step before shard 0 does. After a return to a checkpoint that step no longer
// counts.
static void test_reached(void **state)
{
    (void)state;
    static char words[] = "computing";
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    bel_members_begin_at(f.members, 30);
    bel_members_note_step(f.members, 41);
    assert_int_equal(bel_members_reached(f.members), 41);
    bel_mailbox_send(f.peers[2], 0, BEL_TEST_KIND(Status, status, .step = 57, .doing = words));
    int worker = bel_members_find(f.members, BEL_ROLE_WORKER, 1), sender;
    Bel__Message *got;
    while (bel_members_get(f.members, worker)->step != 57)
        if (bel_members_take(f.members, SOON_SECONDS, &sender, &got)) bel_message_destroy(got);
    assert_int_equal(bel_members_reached(f.members), 57);
    bel_members_begin_at(f.members, 40);
    assert_int_equal(bel_members_reached(f.members), 40);
    bel_mailbox_close(f.peers[2], 0);
    f.peer_count = 2;
    BEL_ASSERT_FAILS(await_loss(&f), BEL_UNAVAILABLE,
                     "lost worker 1 on host-a (pid 99) after step 40");
    tear_down(&f);
}

// A member that reported its failure is waited for, but not named as lost. Otherwise a launcher
// would kill its process before it has reported the reason, and start another.
static void test_failed(void **state)
{
    (void)state;
    fixture f = set_up_with(SOON_SECONDS, true, 0);
    call_all(&f);
    BEL_ASSERT_OK(bel_members_gather(f.members, &graph, go_on, NULL));
    int member = bel_members_find(f.members, BEL_ROLE_WORKER, 1);
    for (int failed = 1; failed >= 0; failed--) {
        if (failed) bel_members_note_failure(f.members, member);
        bel_mailbox_close(f.peers[--f.peer_count], 0);
        await_place(&f, member, false);
        assert_int_equal(bel_members_losses(f.members), failed ? 0 : 1);
        Bel__Join again = good_join(BEL_ROLE_WORKER, 1);
        again.incarnation = failed ? 1 : 2;
        call(&f, &again);
        await_place(&f, member, true); // later the end of its successor is an ordinary loss
    }
    assert_int_equal(bel_members_losses(f.members), 1);
    tear_down(&f);
}

// Takes messages until a member has joined again; returns it.
static const bel_member_view *await_join(fixture *f)
{
    int member;
    Bel__Message *got;
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_clock_ns() < deadline) {
        bool arrived = bel_members_take(f->members, 0.01, &member, &got);
        BEL_ASSERT_OK(bel_members_check(f->members));
        if (!arrived) continue;
        assert_null(got);
        return bel_members_get(f->members, member);
    }
    fail_msg("no member came back");
    return NULL;
}

static void test_coming_back(void **state)
{
    (void)state;
    fixture f = set_up_with(SOON_SECONDS, true, 0);
    call_all(&f);
    const bel_member_view *worker =
        bel_members_get(f.members, bel_members_find(f.members, BEL_ROLE_WORKER, 1));
    // The same process over another connection, with its state.
    Bel__Join join = good_join(BEL_ROLE_WORKER, 1);
    join.step = 17;
    call_holding(&f, 4, &join);
    assert_ptr_equal(await_join(&f), worker);
    assert_true(worker->here && worker->generation == 4 && worker->step == 17);
    // Another process takes its seat while the first is still connected.
    join.incarnation = 2;
    join.pid = 100;
    bel_mailbox *second = call(&f, &join);
    assert_ptr_equal(await_join(&f), worker);
    assert_true(worker->incarnation == 2 && worker->pid == 100 && worker->generation == 0);
    // The first one returns: it receives the refusal, and nothing changes.
    Bel__Join old = good_join(BEL_ROLE_WORKER, 1);
    bel_mailbox *first = call_holding(&f, 4, &old);
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (!bel_mailbox_is_over(first) && bel_clock_ns() < deadline) {
        int member;
        Bel__Message *got;
        assert_false(bel_members_take(f.members, 0.01, &member, &got));
    }
    BEL_ASSERT_FAILS(bel_mailbox_why(first), BEL_ALREADY_EXISTS, "was replaced by incarnation 2");
    assert_false(bel_mailbox_is_over(second));
    assert_int_equal(worker->pid, 100);
    tear_down(&f);
}

// The last message of a killed process arrives after its successor's.
static void test_late_word(void **state)
{
    (void)state;
    fixture f = set_up_with(SOON_SECONDS, true, 0);
    Bel__Join join = good_join(BEL_ROLE_WORKER, 0);
    join.incarnation = 1;
    call(&f, &join);
    bel_members_hear(f.members, 0.05);
    join.incarnation = 0;
    join.pid = 98;
    call(&f, &join);
    const Bel__Join others[] = {good_join(BEL_ROLE_PS, 0), good_join(BEL_ROLE_WORKER, 1)};
    for (int i = 0; i < 2; i++)
        call(&f, &others[i]);
    BEL_ASSERT_OK(bel_members_gather(f.members, &graph, go_on, NULL));
    int worker = bel_members_find(f.members, BEL_ROLE_WORKER, 0);
    assert_int_equal(bel_members_get(f.members, worker)->incarnation, 1);
    tear_down(&f);
}

static void test_staying_away(void **state)
{
    (void)state;
    fixture f = set_up_with(0.3, true, 0);
    call_all(&f);
    bel_mailbox_close(f.peers[2], 0);
    f.peer_count = 2;
    BEL_ASSERT_FAILS(await_loss(&f), BEL_UNAVAILABLE, "it did not come back within 0.3 s");
    tear_down(&f);
}

// --- Workers that may be missing -----------------------------------------------------------------

// Four seats for workers: two are wanted and one suffices.
static fixture set_up_elastic(double join_secs)
{
    fixture f = {0};
    const bel_members_config config = {
        .endpoint = {.listen_address = "127.0.0.1:0", .secret = "s", .accept = accept_nothing},
        .counts = {[BEL_ROLE_WORKER] = 4, [BEL_ROLE_PS] = 1},
        .wanted_workers = 2,
        .min_workers = 1,
        .token = "token",
        .join_timeout_secs = join_secs,
        .silence_timeout_secs = SOON_SECONDS,
        .recovers = true};
    BEL_ASSERT_OK(bel_members_create(&config, &f.members));
    const bel_endpoint_config client = {.secret = "s", .accept = accept_nothing};
    BEL_ASSERT_OK(bel_endpoint_create(&client, &f.client));
    f.bell = bel_doorbell_create();
    return f;
}

static const bel_member_view *worker_of(const fixture *f, int index)
{
    return bel_members_get(f->members, bel_members_find(f->members, BEL_ROLE_WORKER, index));
}

// Checks for losses until the seat is as expected.
static void await_vacant(fixture *f, int index, bool vacant)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (worker_of(f, index)->vacant != vacant && bel_clock_ns() < deadline) {
        int member;
        Bel__Message *got;
        if (bel_members_take(f->members, 0.01, &member, &got)) bel_message_destroy(got);
        BEL_ASSERT_OK(bel_members_check(f->members));
    }
    assert_int_equal(worker_of(f, index)->vacant, vacant);
}

static void test_given_up(void **state)
{
    (void)state;
    fixture f = set_up_elastic(0.3);
    call_all(&f); // does not wait for the two unwanted seats
    assert_true(!worker_of(&f, 1)->vacant && worker_of(&f, 2)->vacant);
    bel_mailbox_close(f.peers[2], 0);
    f.peer_count = 2;
    await_vacant(&f, 1, true);
    bel_str text = {0};
    bel_members_describe(f.members, &text);
    assert_null(strstr(text.text, "worker 1"));
    bel_str_deinit(&text);
    // Worker 1 comes back, and then the other worker is lost: again one suffices.
    Bel__Join join = good_join(BEL_ROLE_WORKER, 1);
    join.incarnation = 1;
    call(&f, &join);
    await_vacant(&f, 1, false);
    bel_mailbox_close(f.peers[1], 0);
    f.peers[1] = f.peers[--f.peer_count];
    await_vacant(&f, 0, true);
    // The last worker is needed.
    bel_mailbox_close(f.peers[1], 0);
    f.peers[1] = f.peers[--f.peer_count];
    BEL_ASSERT_FAILS(await_loss(&f), BEL_UNAVAILABLE, "lost worker 1");
    tear_down(&f);
}

static void test_never_came(void **state)
{
    (void)state;
    fixture f = set_up_elastic(0.3);
    const Bel__Join joins[] = {good_join(BEL_ROLE_PS, 0), good_join(BEL_ROLE_WORKER, 1)};
    for (int i = 0; i < 2; i++)
        call(&f, &joins[i]);
    BEL_ASSERT_OK(bel_members_gather(f.members, &graph, go_on, NULL));
    assert_true(worker_of(&f, 0)->vacant && !worker_of(&f, 1)->vacant);
    tear_down(&f);
    f = set_up_elastic(0.3);
    call(&f, &joins[0]);
    BEL_ASSERT_FAILS(bel_members_gather(f.members, &graph, go_on, NULL), BEL_DEADLINE_EXCEEDED,
                     "no word from worker");
    tear_down(&f);
}

static void test_wanted(void **state)
{
    (void)state;
    fixture f = set_up_elastic(SOON_SECONDS); // a wanted worker would be waited for
    call_all(&f);
    bel_members_want(f.members, 3);
    Bel__Join join = good_join(BEL_ROLE_WORKER, 2);
    bel_mailbox *peer = call(&f, &join);
    await_vacant(&f, 2, false);
    bel_members_want(f.members, 1);
    bel_mailbox_close(f.peers[2], 0); // worker 1
    f.peers[2] = f.peers[--f.peer_count];
    await_vacant(&f, 1, true);
    // Worker 2 receives the end message and leaves.
    bel_members_retire(f.members, bel_members_find(f.members, BEL_ROLE_WORKER, 2));
    Bel__Message *got;
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while ((got = bel_mailbox_take(peer)) == NULL && bel_clock_ns() < deadline)
        (void)bel_doorbell_wait(f.bell, bel_clock_ns() + 1000000);
    assert_non_null(got);
    assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_END);
    assert_int_equal(got->end->code, BEL_OK);
    bel_message_destroy(got);
    int64_t losses = bel_members_losses(f.members);
    bel_mailbox_close(peer, 0);
    f.peer_count--;
    BEL_ASSERT_OK(bel_members_check(f.members));
    assert_int_equal(bel_members_losses(f.members), losses); // it does not count as a loss
    assert_true(worker_of(&f, 2)->vacant && !worker_of(&f, 2)->here);
    tear_down(&f);
}

static void test_dismissal(void **state)
{
    (void)state;
    fixture f = set_up(SOON_SECONDS);
    call_all(&f);
    bel_members_dismiss(f.members, BEL_ABORTED, "the loss is not finite", 0);
    for (int i = 0; i < PEERS; i++) {
        Bel__Message *got;
        int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
        while ((got = bel_mailbox_take(f.peers[i])) == NULL && bel_clock_ns() < deadline)
            (void)bel_doorbell_wait(f.bell, bel_clock_ns() + 1000000);
        assert_non_null(got);
        assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_END);
        assert_int_equal(got->end->code, BEL_ABORTED);
        assert_string_equal(got->end->text, "the loss is not finite");
        bel_message_destroy(got);
    }
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_twice),        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_late_folder),  cmocka_unit_test(test_another_folder),
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_lost),
        cmocka_unit_test(test_reached),      cmocka_unit_test(test_failed),
        cmocka_unit_test(test_long_message), cmocka_unit_test(test_coming_back),
        cmocka_unit_test(test_late_word),    cmocka_unit_test(test_staying_away),
        cmocka_unit_test(test_dismissal),    cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_never_came),   cmocka_unit_test(test_wanted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
