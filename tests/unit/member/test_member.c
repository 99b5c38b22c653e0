// A parameter server against a master and a worker that the test plays: tokens, setups, and
// repeated requests.
#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "checkpoint/checkpoint.h"
#include "master/backend/remote.h"
#include "member/member.h"
#include "ps/frames/frames.h"
#include "ps/layout/step_stats.h"
#include "support/bel_test.h"
#include "support/message.h"
#include "transport/streams/mailbox.h"
#include "transport/streams/stream_lane.h"

enum { SOON_SECONDS = 20 };

typedef struct fixture {
    char *folder;
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    bel_estimator *estimator;
    bel_task task;
    bel_member_program program;
    pthread_t member;
    bel_code end; // the member's code, valid after the join

    pthread_mutex_t mutex;
    bel_mailbox *caller; // guarded
} fixture;

static bel_status *accept_member(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    fixture *f = context;
    if (strcmp(path, BEL_MAILBOX_PATH) != 0) return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
    bel_mailbox *mailbox = bel_mailbox_accept(stream, f->bell, out_events);
    pthread_mutex_lock(&f->mutex);
    f->caller = mailbox;
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

static bel_status *no_model(bel_model_context *context, bel_estimator_spec *spec)
{
    (void)context, (void)spec;
    return BEL_ERR(BEL_INTERNAL, "a parameter server builds no model");
}

static void *member_main(void *argument)
{
    fixture *f = argument;
    bel_status *status = bel_member_run(&f->task, &f->program, NULL);
    f->end = bel_status_code(status);
    bel_status_ignore(status); // the test checks its code
    return NULL;
}

// A member that cannot verify the master's certificate names that as the reason, although the last
// of its many calls times out.
static void test_other_authority(void **state)
{
    (void)state;
    static char job[] = "test", served[] = "127.0.0.1:0", secret[] = "s",
                ca[] = "tests/support/tls/stranger.pem",
                certificate[] = "tests/support/tls/host.pem", key[] = "tests/support/tls/host.key";
    fixture f = {.folder = bel_test_folder(), .bell = bel_doorbell_create()};
    const bel_endpoint_config endpoint = {.listen_address = "127.0.0.1:0",
                                          .secret = secret,
                                          .tls_ca = "tests/support/tls/ca.pem",
                                          .tls_certificate = certificate,
                                          .tls_key = key,
                                          .accept = accept_member,
                                          .context = &f};
    BEL_ASSERT_OK(bel_endpoint_create(&endpoint, &f.endpoint));
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = f.folder;
    BEL_ASSERT_OK(bel_estimator_create(no_model, &config, NULL, 0, &f.estimator));
    const bel_member_program program = {.estimator = f.estimator};
    char *address = bel_xstrdup(bel_endpoint_address(f.endpoint));
    const bel_task task = {.job = job,
                           .role = BEL_ROLE_PS,
                           .worker_count = 1,
                           .ps_count = 1,
                           .master_address = address,
                           .listen_address = served,
                           .secret = secret,
                           .tls_ca = ca,
                           .tls_certificate = certificate,
                           .tls_key = key,
                           .join_timeout_secs = 3, // an emulated handshake takes one second
                           .silence_timeout_secs = SOON_SECONDS};
    BEL_ASSERT_FAILS(bel_member_run(&task, &program, NULL), BEL_UNAVAILABLE,
                     "certificate verify failed; hint: if it runs, see");
    bel_free(address);
    bel_endpoint_destroy(f.endpoint);
    bel_doorbell_destroy(f.bell);
    bel_estimator_destroy(f.estimator);
    bel_test_remove_folder(f.folder);
}

// Sets up the endpoint and starts ps 0, which calls it.
static void set_up(fixture *f)
{
    static char job[] = "test", served[] = "127.0.0.1:0", secret[] = "s";
    *f = (fixture){.folder = bel_test_folder(), .bell = bel_doorbell_create()};
    pthread_mutex_init(&f->mutex, NULL);
    const bel_endpoint_config endpoint = {
        .listen_address = served, .secret = secret, .accept = accept_member, .context = f};
    BEL_ASSERT_OK(bel_endpoint_create(&endpoint, &f->endpoint));
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = f->folder;
    BEL_ASSERT_OK(bel_estimator_create(no_model, &config, NULL, 0, &f->estimator));
    f->program = (bel_member_program){.estimator = f->estimator};
    f->task = (bel_task){.job = job,
                         .role = BEL_ROLE_PS,
                         .worker_count = 1,
                         .ps_count = 1,
                         .master_address = bel_xstrdup(bel_endpoint_address(f->endpoint)),
                         .listen_address = served,
                         .secret = secret,
                         .recovers = true,
                         .join_timeout_secs = SOON_SECONDS,
                         .silence_timeout_secs = SOON_SECONDS};
    BEL_ASSERT_OK(bel_thread_start(&f->member, member_main, f));
}

static bel_mailbox *caller_of(fixture *f)
{
    pthread_mutex_lock(&f->mutex);
    bel_mailbox *caller = f->caller;
    pthread_mutex_unlock(&f->mutex);
    return caller;
}

// Returns the member's next message of this kind.
static Bel__Message *take(fixture *f, Bel__Message__KindCase kind)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_clock_ns() < deadline) {
        bel_mailbox *caller = caller_of(f);
        Bel__Message *message;
        while (caller != NULL && (message = bel_mailbox_take(caller)) != NULL) {
            if (message->kind_case == kind) return message;
            bel_message_destroy(message);
        }
        (void)bel_doorbell_wait(f->bell, bel_clock_ns() + 1000000);
    }
    fail_msg("the member does not send what is expected");
    return NULL;
}

// Ends the job, unless the member ended it.
static void tear_down(fixture *f)
{
    bel_mailbox *caller = caller_of(f);
    bel_mailbox_send(caller, 0, BEL_TEST_KIND(End, end, .code = BEL_OK));
    pthread_join(f->member, NULL);
    bel_mailbox_close(caller, 0);
    bel_endpoint_destroy(f->endpoint);
    bel_doorbell_destroy(f->bell);
    bel_estimator_destroy(f->estimator);
    bel_free(f->task.master_address);
    pthread_mutex_destroy(&f->mutex);
    bel_test_remove_folder(f->folder);
}

// Sends a setup of generation 1 with one shard, at `address`, and one worker of one replica.
static void send_setup(fixture *f, char *address, char *checkpoint, Bel__Setup setup)
{
    char *shards[] = {address};
    int32_t replicas[] = {1};
    uint32_t incarnations[] = {0};
    Bel__Schedule schedule;
    bel__schedule__init(&schedule); // saves every version
    Bel__Segment segment;
    bel__segment__init(&segment);
    Bel__Counting counting;
    bel__counting__init(&counting);
    schedule.last_step = 9;
    schedule.save_steps = 1;
    setup.checkpoint = checkpoint;
    setup.shards = shards;
    setup.n_shards = 1;
    setup.replicas = replicas;
    setup.n_replicas = 1;
    setup.incarnations = incarnations;
    setup.n_incarnations = 1;
    setup.schedule = &schedule;
    setup.segment = &segment;
    setup.counting = &counting;
    counting.workers = counting.local_steps = 1;
    bel_mailbox_send(caller_of(f), 1, &setup.base);
}

// Sends this setup to a joined member, which must end with an error that contains `part`.
static void refuse_setup(Bel__Variable variable, Bel__Table table, bel_code code, const char *part)
{
    static char address[] = "unix:/nowhere", checkpoint[] = "none";
    fixture f;
    set_up(&f);
    bel_message_destroy(take(&f, BEL__MESSAGE__KIND_JOIN));
    Bel__Variable *variables[] = {&variable};
    Bel__Table *tables[] = {&table};
    Bel__Setup setup;
    bel__setup__init(&setup);
    setup.variables = variables;
    setup.tables = tables;
    setup.n_variables = setup.n_tables = 1;
    send_setup(&f, address, checkpoint, setup);
    Bel__Message *ended = take(&f, BEL__MESSAGE__KIND_ENDED);
    assert_int_equal(ended->ended->code, code);
    assert_non_null(strstr(ended->ended->text, part));
    bel_message_destroy(ended);
    tear_down(&f);
    assert_int_equal(f.end, code);
}

static void test_setups_that_cannot_be(void **state)
{
    (void)state;
    static char kernel[] = "dense", user[] = "user";
    int64_t four[] = {4}, most[] = {INT32_MAX, INT32_MAX, INT32_MAX}, negative[] = {-1},
            nothing[] = {0, 4};
    Bel__Variable variable;
    bel__variable__init(&variable);
    variable.name = kernel;
    variable.dims = four;
    variable.n_dims = 1;
    Bel__Table table;
    bel__table__init(&table);
    table.name = user;
    table.width = 4;
    table.ids = 8;
    Bel__Table many = table, wide = table, none = table;
    many.ids = INT64_MAX;
    wide.width = INT32_MAX, wide.ids = 1 << 20;
    none.ids = 0;
    refuse_setup(variable, many, BEL_RESOURCE_EXHAUSTED,
                 "ps 0: table \"user\": 9223372036854775807 ids of a replica's batch");
    refuse_setup(variable, wide, BEL_RESOURCE_EXHAUSTED, "rows of 2147483647 floats");
    refuse_setup(variable, none, BEL_INVALID_ARGUMENT, "malformed setup: table \"user\"");
    Bel__Variable large = variable;
    large.dims = most;
    large.n_dims = 3;
    refuse_setup(large, table, BEL_INVALID_ARGUMENT, "malformed setup: variable \"dense\"");
    large.dims = negative;
    large.n_dims = 1;
    refuse_setup(large, table, BEL_INVALID_ARGUMENT, "malformed setup: variable \"dense\"");
    Bel__Variable own = variable; // without replicas
    own.kind = BEL_VARIABLE_REPLICA_MEAN;
    own.dims = nothing;
    refuse_setup(own, table, BEL_INVALID_ARGUMENT, "malformed setup: variable \"dense\"");
    own.n_dims = 0;
    refuse_setup(own, table, BEL_INVALID_ARGUMENT, "malformed setup: variable \"dense\"");
    variable.kind = BEL_VARIABLE_REPLICA_FIRST + 1;
    refuse_setup(variable, table, BEL_INVALID_ARGUMENT, "malformed setup: variable \"dense\"");
}

// --- A running shard -----------------------------------------------------------------------------

enum { ELEMENTS = 4 };
static char dense[] = "dense";

typedef struct fake_worker { // worker 0, the only worker
    fixture f;
    char *address; // address of the shard
    bel_lane *lane;
    float values[ELEMENTS], sums[ELEMENTS];
    double stats[BEL_STATS_COUNT];
} fake_worker;

static char *write_checkpoint(const char *model_dir)
{
    static const float zeros[ELEMENTS];
    char *folder;
    bel_ckpt_shard *part;
    bel_hash128 digest;
    const bel_ckpt_piece piece = {dense, BEL_DTYPE_F32, BEL_SHAPE(ELEMENTS), 0, ELEMENTS, zeros};
    const bel_ckpt_info info = {.step = 0};
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 0, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 1, &piece, 1, &part));
    BEL_ASSERT_OK(bel_ckpt_commit(model_dir, folder, &info, &part, 1, &digest));
    bel_ckpt_shard_destroy(part);
    bel_free(folder);
    return bel_strf("%s/ckpt-00000000", model_dir);
}

static void *place_values(void *context, const bel_frame *frame)
{
    fake_worker *w = context;
    return frame->payload_bytes == sizeof w->values ? w->values : NULL;
}

static void connect(fake_worker *w, uint32_t incarnation)
{
    const bel_lane_hello hello = {
        .kind = BEL_HELLO_WORKER, .generation = 1, .incarnation = incarnation};
    const bel_stream_lane_config config = {
        .capacity = 8, .bell = w->f.bell, .place = place_values, .place_context = w};
    w->lane = bel_stream_lane_connect(w->f.endpoint, w->address, &hello, &config);
}

static void begin(fake_worker *w)
{
    *w = (fake_worker){.stats = {[BEL_STATS_EXAMPLES] = 1}};
    set_up(&w->f);
    Bel__Message *join = take(&w->f, BEL__MESSAGE__KIND_JOIN);
    w->address = bel_xstrdup(join->join->address);
    bel_message_destroy(join);
    char *checkpoint = write_checkpoint(w->f.folder);
    static char name[] = "optimizer", sgd[] = "sgd";
    int64_t dims[] = {ELEMENTS};
    Bel__Variable variable, *variables[] = {&variable};
    bel__variable__init(&variable);
    variable.name = dense;
    variable.dims = dims;
    variable.n_dims = 1;
    Bel__Setting setting, *optimizer[] = {&setting};
    bel__setting__init(&setting);
    setting.name = name;
    setting.value = sgd;
    Bel__Setup setup;
    bel__setup__init(&setup);
    setup.variables = variables;
    setup.n_variables = 1;
    setup.optimizer = optimizer;
    setup.n_optimizer = 1;
    send_setup(&w->f, w->address, checkpoint, setup);
    bel_free(checkpoint);
}

static void send_frame(fake_worker *w, uint32_t incarnation, bel_frame frame)
{
    frame.generation = 1;
    frame.incarnation = incarnation;
    BEL_ASSERT_OK(bel_lane_send(w->lane, &frame));
}

static void report_step_0(fake_worker *w, uint32_t incarnation)
{
    send_frame(w, incarnation, bel_pull_frame_write((bel_pull_frame){0}, NULL, 0));
    send_frame(w, incarnation,
               bel_report_frame_write((bel_report_frame){0}, w->sums, sizeof w->sums));
    send_frame(w, incarnation,
               bel_stats_frame_write((bel_stats_frame){0}, w->stats, sizeof w->stats));
}

static void expect_snapshot(fake_worker *w)
{
    Bel__Message *snapshot = take(&w->f, BEL__MESSAGE__KIND_SNAPSHOT);
    assert_int_equal(snapshot->snapshot->step, 1);
    assert_true(snapshot->snapshot->save);
    assert_int_equal(snapshot->snapshot->next_block, -1);
    bel_message_destroy(snapshot);
}

static void finish(fake_worker *w)
{
    bel_lane_close(w->lane);
    bel_free(w->address);
    tear_down(&w->f);
    assert_int_equal(w->f.end, BEL_OK);
}

// Over a new connection the shard reports its state and its complete snapshot again: the master may
// be another process.
static void test_a_snapshot_is_told_again(void **state)
{
    (void)state;
    fake_worker w;
    begin(&w);
    connect(&w, 0);
    report_step_0(&w, 0);
    expect_snapshot(&w);
    pthread_mutex_lock(&w.f.mutex);
    bel_mailbox *before = w.f.caller;
    w.f.caller = NULL;
    pthread_mutex_unlock(&w.f.mutex);
    bel_mailbox_close(before, 0);
    Bel__Message *join = take(&w.f, BEL__MESSAGE__KIND_JOIN);
    assert_int_equal(join->generation, 1);
    bel_message_destroy(join);
    expect_snapshot(&w);
    finish(&w);
}

static void admit(fake_worker *w)
{
    bel_mailbox_send(caller_of(&w->f), 1, BEL_TEST_KIND(Admit, admit, .incarnation = 1));
    Bel__Message *admitted = take(&w->f, BEL__MESSAGE__KIND_ADMITTED);
    assert_int_equal(admitted->admitted->incarnation, 1);
    assert_int_equal(admitted->admitted->step, 0);
    bel_message_destroy(admitted);
}

// A worker may have begun when its shard receives a second request to admit it: the worker keeps
// its lane.
static void test_who_is_admitted_twice_keeps_its_lane(void **state)
{
    (void)state;
    fake_worker w;
    begin(&w);
    admit(&w);
    connect(&w, 1);
    bel_frame frame = {0};
    send_frame(&w, 1, bel_pull_frame_write((bel_pull_frame){0}, NULL, 0));
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (frame.kind != BEL_FRAME_VERSION && bel_clock_ns() < deadline)
        if (!bel_lane_receive(w.lane, &frame))
            (void)bel_doorbell_wait(w.f.bell, bel_clock_ns() + 1000000);
    assert_int_equal(frame.kind, BEL_FRAME_VERSION);
    admit(&w);
    report_step_0(&w, 1);
    expect_snapshot(&w);
    assert_false(bel_lane_is_cut(w.lane));
    finish(&w);
}

// --- Tokens --------------------------------------------------------------------------------------

static void join_reads(fixture *f, const char *token)
{
    Bel__Message *join = take(f, BEL__MESSAGE__KIND_JOIN);
    assert_string_equal(join->join->token, token);
    bel_message_destroy(join);
}

// On a network file system the folder may appear late, or show old content first.
static void test_a_late_token(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    join_reads(&f, "");
    bel_free(bel_test_file(f.folder, BEL_TOKEN_FILE, "old", 3));
    join_reads(&f, "old");
    bel_free(bel_test_file(f.folder, BEL_TOKEN_FILE, "new", 3));
    join_reads(&f, "new");
    tear_down(&f);
    assert_int_equal(f.end, BEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_authority),
        cmocka_unit_test(test_a_late_token),
        cmocka_unit_test(test_setups_that_cannot_be),
        cmocka_unit_test(test_a_snapshot_is_told_again),
        cmocka_unit_test(test_who_is_admitted_twice_keeps_its_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
