// The master's side of a cluster, against members that are mailboxes of this process: two shards,
// two workers and an evaluator. They hold the state of generation 1 unless a test says otherwise.
// The tests send messages late, twice, or from members that came back.
#include "base/alloc.h"
#include "base/clock.h"
#include "master/backend/journal.h"
#include "master/backend/remote_inner.h"
#include "support/bel_test.h"
#include "support/message.h"
#include "transport/streams/mailbox.h"

enum { SOON_SECONDS = 20, SHARDS = 2, WORKERS = 2, PEERS = SHARDS + WORKERS + 1 };
enum { PS_0, PS_1, WORKER_0, WORKER_1, EVALUATOR }; // peers
enum { FIRST = 10, LAST = 20 };                     // steps

typedef struct fixture {
    char *folder;
    bel_members *members;
    bel_endpoint *client;
    bel_doorbell *bell;
    bel_mailbox *peers[PEERS];
    bel_layout *layout;
    bel_estimator *estimator;
    bel_built built;
    bel_trainable trainable;
    bel_task task;
    remote *master;
    bel_control_state state; // the backend's, from the last wait
} fixture;

static bel_status *accept_nothing(void *context, const char *path, bel_stream *stream,
                                  bel_stream_events *out_events)
{
    (void)context, (void)stream, (void)out_events;
    return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
}

static bel_status *no_model(bel_model_context *context, bel_estimator_spec *spec)
{
    (void)context, (void)spec;
    return BEL_ERR(BEL_INTERNAL, "no model is built here");
}

static void make_backend(fixture *f, bel_counting counting)
{
    static char dense[] = "dense";
    const bel_layout_variable variable = {.name = dense, .shape = BEL_SHAPE(4)};
    f->layout = bel_layout_create(&variable, 1, SHARDS);
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = f->folder;
    BEL_ASSERT_OK(bel_estimator_create(no_model, &config, NULL, 0, &f->estimator));
    BEL_ASSERT_OK(bel_estimator_place(f->estimator, WORKERS, NULL, SHARDS, 1));
    f->task = (bel_task){
        .worker_count = WORKERS, .ps_count = SHARDS, .evaluator_count = 1, .recovers = true};
    f->trainable = (bel_trainable){
        .estimator = f->estimator, .built = &f->built, .layout = f->layout, .counting = counting};
    const bel_remote_config remote_config = {
        .members = f->members, .eval_count = 2, .task = &f->task, .trainable = &f->trainable};
    bel_backend *backend;
    BEL_ASSERT_OK(bel_remote_create(&remote_config, &backend));
    f->master = (remote *)backend;
    f->master->plan.checkpoint = bel_xstrdup("a checkpoint");
}

static void set_up(fixture *f, bel_counting counting)
{
    *f = (fixture){.folder = bel_test_folder(), .bell = bel_doorbell_create()};
    const bel_members_config config = {
        .endpoint = {.listen_address = "127.0.0.1:0", .secret = "s", .accept = accept_nothing},
        .counts = {[BEL_ROLE_WORKER] = WORKERS, [BEL_ROLE_PS] = SHARDS, [BEL_ROLE_EVALUATOR] = 1},
        .wanted_workers = WORKERS,
        .token = "token",
        .join_timeout_secs = SOON_SECONDS,
        .silence_timeout_secs = SOON_SECONDS,
        .recovers = true};
    BEL_ASSERT_OK(bel_members_create(&config, &f->members));
    const bel_endpoint_config client = {.secret = "s", .accept = accept_nothing};
    BEL_ASSERT_OK(bel_endpoint_create(&client, &f->client));
    make_backend(f, counting);
}

static void tear_down(fixture *f)
{
    for (int i = 0; i < PEERS; i++)
        bel_mailbox_close(f->peers[i], 0);
    f->master->backend.ops->destroy(&f->master->backend);
    bel_members_destroy(f->members);
    bel_endpoint_destroy(f->client);
    bel_doorbell_destroy(f->bell);
    bel_estimator_destroy(f->estimator);
    bel_layout_destroy(f->layout);
    bel_test_remove_folder(f->folder);
}

// Sends a join; a second call uses a new connection.
static void join(fixture *f, int peer, uint32_t generation, int64_t step)
{
    static char token[] = "token", host[] = "host", served[] = "unix:/x";
    char version[64];
    snprintf(version, sizeof version, "%s", bel_version());
    static const struct {
        bel_role role;
        int32_t index;
    } members[] = {{BEL_ROLE_PS, 0},
                   {BEL_ROLE_PS, 1},
                   {BEL_ROLE_WORKER, 0},
                   {BEL_ROLE_WORKER, 1},
                   {BEL_ROLE_EVALUATOR, 0}};
    bel_mailbox_close(f->peers[peer], 0);
    f->peers[peer] = bel_mailbox_open(
        f->client, bel_endpoint_address(bel_members_endpoint(f->members)), f->bell);
    bel_mailbox_send(f->peers[peer], generation,
                     BEL_TEST_KIND(Join, join, .protocol = BEL_PROTOCOL_VERSION, .version = version,
                                   .role = (int32_t)members[peer].role,
                                   .index = members[peer].index, .host = host, .pid = 99,
                                   .address = served, .token = token, .step = step));
}

static void start(fixture *f)
{
    const bel_control_config schedule = {.first_step = FIRST, .last_step = LAST};
    const bel_input_segment segment = {.replica_count = WORKERS};
    bel_backend *backend = &f->master->backend;
    BEL_ASSERT_OK(backend->ops->gather(backend));
    BEL_ASSERT_OK(backend->ops->start(backend, &schedule, &segment, INT64_MAX));
}

// The earlier master's record of generation 1: a replica for each worker.
static void record_assignment(const fixture *f)
{
    const int replicas[WORKERS] = {1, 1};
    const bel_journal_line line = {.event = "generation",
                                   .generation = 1,
                                   .step = FIRST,
                                   .text = "a checkpoint",
                                   .replicas = replicas,
                                   .worker_count = WORKERS};
    BEL_ASSERT_OK(bel_journal_write(f->folder, &line));
}

// A master that finds a job at that step and takes it over.
static void take_over(fixture *f, int64_t step)
{
    set_up(f, (bel_counting){.kind = BEL_COUNTING_ALL});
    record_assignment(f);
    for (int i = 0; i < PEERS; i++)
        join(f, i, 1, step);
    start(f);
    assert_true(f->master->backend.runs);
}

static void say(fixture *f, int peer, const ProtobufCMessage *kind)
{
    bel_mailbox_send(f->peers[peer], f->master->backend.generation, kind);
}

// Runs the backend until `is_so`.
static void wait_until(fixture *f, bool (*is_so)(const fixture *f))
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    bel_backend *backend = &f->master->backend;
    backend->ops->wait(backend, 0, &f->state);
    while (!is_so(f) && bel_clock_ns() < deadline)
        backend->ops->wait(backend, 0.01, &f->state);
    assert_true(is_so(f));
}

static bool error_is_there(const fixture *f)
{
    return f->master->error != NULL;
}

static bool stop_was_heard(const fixture *f)
{
    return f->master->sent.stop;
}

// Returns when the master has taken all that the peer sent before.
static void wait_for_words_of(fixture *f, int peer)
{
    f->master->sent.stop = false;
    say(f, peer, BEL_TEST_KIND(Stop, stop, .why = NULL));
    wait_until(f, stop_was_heard);
}

// Returns the master's next message to a peer.
static Bel__Message *heard(fixture *f, int peer)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_clock_ns() < deadline) {
        Bel__Message *message = bel_mailbox_take(f->peers[peer]);
        if (message != NULL) return message;
        (void)bel_doorbell_wait(f->bell, bel_clock_ns() + 1000000);
    }
    fail_msg("the master is silent");
    return NULL;
}

static void hears(fixture *f, int peer, Bel__Message__KindCase kind)
{
    Bel__Message *message = heard(f, peer);
    assert_int_equal(message->kind_case, kind);
    bel_message_destroy(message);
}

static bool snapshot_is_there(const fixture *f)
{
    return f->state.has_snapshot;
}

static bool end_is_heard_of(const fixture *f)
{
    const remote *r = f->master;
    return r->ended.count == WORKERS && r->progress.heard && r->snapshots.announced == LAST;
}

static void workers_end(fixture *f)
{
    for (int w = 0; w < WORKERS; w++)
        say(f, WORKER_0 + w, BEL_TEST_KIND(Ended, ended, .step = LAST));
}

// --- Evaluations ---------------------------------------------------------------------------------

// An evaluation as a message, with a matrix and a curve.
typedef struct evaluation {
    Bel__Evaluation message, *list[2];
    Bel__Metric metric, *metrics[1];
    Bel__Roc roc, *rocs[1];
    double numbers[4];
} evaluation;

static void make_evaluation(evaluation *e)
{
    static char metric[] = "accuracy", roc[] = "auc";
    *e = (evaluation){.numbers = {0, 0.25, 0.5, 1}};
    bel__evaluation__init(&e->message);
    bel__metric__init(e->metrics[0] = &e->metric);
    bel__roc__init(e->rocs[0] = &e->roc);
    e->list[0] = e->list[1] = &e->message;
    e->metric.name = metric;
    e->metric.value = 0.75;
    e->roc.name = roc;
    e->roc.no = e->roc.yes = e->roc.precision = e->numbers;
    e->roc.n_no = e->roc.n_yes = e->roc.n_precision = 3;
    e->message.loss = 1.5;
    e->message.examples = 7;
    e->message.metrics = e->metrics;
    e->message.n_metrics = 1;
    e->message.classes = 2;
    e->message.confusion = e->numbers;
    e->message.n_confusion = 4;
    e->message.rocs = e->rocs;
    e->message.n_rocs = 1;
}

static void say_evaluations(fixture *f, int64_t step, evaluation *e, size_t count)
{
    say(f, EVALUATOR,
        BEL_TEST_KIND(Evaluated, evaluated, .step = step, .evaluations = e->list,
                      .n_evaluations = count));
    wait_for_words_of(f, EVALUATOR);
}

static int64_t hears_evaluate(fixture *f)
{
    Bel__Message *message = heard(f, EVALUATOR);
    assert_int_equal(message->kind_case, BEL__MESSAGE__KIND_EVALUATE);
    int64_t step = message->evaluate->step;
    bel_message_destroy(message);
    return step;
}

// The answer to the last request counts, once. The request is repeated to an evaluator that comes
// back.
static void test_evaluations(void **state)
{
    (void)state;
    evaluation e;
    bel_evaluated got;
    fixture f;
    make_evaluation(&e);
    take_over(&f, FIRST);
    bel_backend *backend = &f.master->backend;
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_SETUP);
    say_evaluations(&f, 12, &e, 2); // not requested
    backend->ops->ask_evaluator(backend, 12);
    backend->ops->ask_evaluator(backend, 15);
    assert_int_equal(hears_evaluate(&f), 12);
    assert_int_equal(hears_evaluate(&f), 15);
    say_evaluations(&f, 12, &e, 2);
    assert_false(backend->ops->take_evaluated(backend, &got));
    join(&f, EVALUATOR, 1, 0);
    wait_for_words_of(&f, EVALUATOR);
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_SETUP);
    assert_int_equal(hears_evaluate(&f), 15);
    say_evaluations(&f, 15, &e, 2);
    say_evaluations(&f, 15, &e, 2);
    assert_true(backend->ops->take_evaluated(backend, &got));
    assert_true(got.step == 15 && got.count == 2 && got.failure == NULL);
    for (int i = 0; i < 2; i++) {
        const bel_result *result = &got.results[i];
        const bel_details *details = &got.details[i];
        assert_true(result->loss == 1.5 && result->examples == 7 && result->global_step == 15);
        assert_string_equal(result->metrics[0].name, "accuracy");
        assert_true(result->metric_count == 1 && result->metrics[0].value == 0.75);
        assert_true(details->classes == 2 && details->confusion[2] == 0.5 && details->step == 15);
        assert_true(details->roc_count == 1 && details->rocs[0].count == 3);
        assert_true(details->rocs[0].yes[1] == 0.25);
        assert_string_equal(details->rocs[0].name, "auc");
    }
    bel_evaluated_deinit(&got);
    assert_false(backend->ops->take_evaluated(backend, &got));
    backend->ops->ask_evaluator(backend, 16);
    static char why[] = "it is gone";
    say(&f, EVALUATOR,
        BEL_TEST_KIND(Evaluated, evaluated, .step = 16, .code = BEL_NOT_FOUND, .why = why));
    wait_for_words_of(&f, EVALUATOR);
    assert_true(backend->ops->take_evaluated(backend, &got));
    BEL_ASSERT_FAILS(got.failure, BEL_NOT_FOUND, "evaluator 0: it is gone");
    got.failure = NULL;
    bel_evaluated_deinit(&got);
    tear_down(&f);
}

// After a loss nothing counts as requested.
// Each setup ends the evaluator's work, so the request follows, also at the end of training.
static void test_a_request_survives_no_loss(void **state)
{
    (void)state;
    fixture f;
    take_over(&f, FIRST);
    bel_backend *backend = &f.master->backend;
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_SETUP);
    assert_int_equal(backend->evaluating, -1);
    backend->ops->ask_evaluator(backend, 15);
    assert_int_equal(hears_evaluate(&f), 15);
    assert_int_equal(backend->evaluating, 15);
    f.master->started = false; // the checkpoint was loaded, and nothing is left to train
    BEL_ASSERT_OK(backend->ops->snapshot_now(backend));
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_SETUP);
    assert_int_equal(hears_evaluate(&f), 15);
    BEL_ASSERT_OK(backend->ops->gather(backend));
    assert_int_equal(backend->evaluating, -1);
    tear_down(&f);
}

// An evaluator requests files, as its setup said, also after it has seen the folder.
static void test_files_of_a_late_folder(void **state)
{
    (void)state;
    static char file[] = "manifest.json";
    fixture f;
    take_over(&f, FIRST);
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_SETUP);
    assert_false(
        bel_members_get(f.members, bel_members_find(f.members, BEL_ROLE_EVALUATOR, 0))->blind);
    say(&f, EVALUATOR, BEL_TEST_KIND(Fetch, fetch, .step = 15, .file = file));
    wait_for_words_of(&f, EVALUATOR);
    hears(&f, EVALUATOR, BEL__MESSAGE__KIND_PIECE);
    tear_down(&f);
}

static void lacks_one(evaluation *e)
{
    e->message.n_confusion = 3;
}

static void has_too_many_classes(evaluation *e)
{
    e->message.classes = 1 << 20;
}

static void has_uneven_curve(evaluation *e)
{
    e->roc.n_precision = 2;
}

static void is_no_share(evaluation *e)
{
    e->numbers[1] = 2;
}

static void test_malformed_evaluations(void **state)
{
    (void)state;
    static void (*const change[])(evaluation * e) = {lacks_one, has_too_many_classes,
                                                     has_uneven_curve, is_no_share};
    for (size_t i = 0; i <= sizeof change / sizeof *change; i++) {
        bool all = i < sizeof change / sizeof *change; // else one evaluation is missing
        evaluation e;
        fixture f;
        make_evaluation(&e);
        if (all) change[i](&e);
        take_over(&f, FIRST);
        f.master->backend.ops->ask_evaluator(&f.master->backend, 15);
        say(&f, EVALUATOR,
            BEL_TEST_KIND(Evaluated, evaluated, .step = 15, .evaluations = e.list,
                          .n_evaluations = all ? 2 : 1));
        wait_until(&f, error_is_there);
        BEL_ASSERT_FAILS(bel_remote_take_error(f.master), BEL_INVALID_ARGUMENT,
                         "malformed results of evaluator 0 for step 15");
        tear_down(&f);
    }
}

// --- Snapshots -----------------------------------------------------------------------------------

// A shard's report of a snapshot older than its last one does not count. The master does not use a
// snapshot before shard 0 has reported all steps up to it.
static void test_an_old_snapshot(void **state)
{
    (void)state;
    fixture f;
    take_over(&f, FIRST);
    say(&f, PS_1, BEL_TEST_KIND(Snapshot, snapshot, .step = 15));
    say(&f, PS_1, BEL_TEST_KIND(Snapshot, snapshot, .step = 12));
    wait_for_words_of(&f, PS_1);
    assert_false(f.state.has_snapshot);
    say(&f, PS_0, BEL_TEST_KIND(Progress, progress, .step = 14));
    say(&f, PS_0, BEL_TEST_KIND(Snapshot, snapshot, .step = 15, .save = true));
    wait_for_words_of(&f, PS_0);
    assert_false(f.state.has_snapshot); // points up to it may still arrive
    say(&f, PS_0, BEL_TEST_KIND(Progress, progress, .step = 15));
    wait_until(&f, snapshot_is_there);
    assert_int_equal(f.state.snapshot, 15);
    assert_true(f.state.save);
    tear_down(&f);
}

// A shard that reports a snapshot again has not received its release.
static void test_a_release_that_was_lost(void **state)
{
    (void)state;
    fixture f;
    take_over(&f, FIRST);
    say(&f, PS_1, BEL_TEST_KIND(Snapshot, snapshot, .step = 15));
    say(&f, PS_0, BEL_TEST_KIND(Snapshot, snapshot, .step = 15));
    say(&f, PS_0, BEL_TEST_KIND(Progress, progress, .step = 15));
    wait_until(&f, snapshot_is_there);
    f.master->backend.ops->release_snapshot(&f.master->backend);
    hears(&f, PS_0, BEL__MESSAGE__KIND_RELEASE);
    say(&f, PS_0, BEL_TEST_KIND(Snapshot, snapshot, .step = 15));
    wait_for_words_of(&f, PS_0);
    hears(&f, PS_0, BEL__MESSAGE__KIND_RELEASE);
    assert_false(f.state.has_snapshot);
    tear_down(&f);
}

// Training does not end before the last snapshot that shard 0 announced is complete and was used.
static void test_the_last_snapshot_is_waited_for(void **state)
{
    (void)state;
    fixture f;
    take_over(&f, FIRST);
    say(&f, PS_0, BEL_TEST_KIND(Snapshot, snapshot, .step = LAST, .save = true));
    say(&f, PS_0, BEL_TEST_KIND(Progress, progress, .step = LAST));
    workers_end(&f);
    wait_until(&f, end_is_heard_of);
    assert_true(f.state.running && !f.state.has_snapshot);
    say(&f, PS_1, BEL_TEST_KIND(Snapshot, snapshot, .step = LAST));
    wait_until(&f, snapshot_is_there);
    assert_true(f.state.running);
    f.master->backend.ops->release_snapshot(&f.master->backend);
    f.master->backend.ops->wait(&f.master->backend, 0, &f.state);
    assert_false(f.state.running);
    tear_down(&f);
}

static bool workers_have_ended(const fixture *f)
{
    return f->master->ended.count == WORKERS;
}

static bool is_over(const fixture *f)
{
    return !f->state.running;
}

// A join states a shard's step. Only shard 0's progress ends the training.
static void test_a_join_does_not_end_training(void **state)
{
    (void)state;
    fixture f;
    take_over(&f, LAST);
    workers_end(&f);
    wait_until(&f, workers_have_ended);
    assert_true(f.state.running);
    say(&f, PS_0, BEL_TEST_KIND(Progress, progress, .step = LAST));
    wait_until(&f, is_over);
    tear_down(&f);
}

static bool one_has_saved(const fixture *f)
{
    return f->master->saving.saved == 1;
}

// Both connections break during a checkpoint: a shard that saved is not asked again.
static void test_nobody_saves_twice(void **state)
{
    (void)state;
    static char folder[] = "a folder";
    fixture f;
    bel_ckpt_shard *saved[SHARDS] = {NULL}, *part = bel_ckpt_hash_shard(NULL, 0);
    take_over(&f, FIRST);
    f.master->saving.parts = saved;
    bel_remote_ask_shards(f.master, BEL_ASKED_SAVE, 15, folder);
    for (int k = 0; k < SHARDS; k++)
        hears(&f, PS_0 + k, BEL__MESSAGE__KIND_SAVE);
    Bel__Saved answer;
    bel__saved__init(&answer);
    answer.part.data = bel_ckpt_shard_pack(part, &answer.part.len);
    answer.step = 14; // from an earlier checkpoint
    say(&f, PS_0, &answer.base);
    wait_for_words_of(&f, PS_0);
    assert_int_equal(f.master->saving.saved, 0);
    hears(&f, PS_0, BEL__MESSAGE__KIND_STOP);
    answer.step = 15;
    say(&f, PS_0, &answer.base);
    wait_until(&f, one_has_saved);
    for (int k = 0; k < SHARDS; k++) {
        f.master->sent.stop = false; // otherwise it is sent again
        join(&f, PS_0 + k, 1, 15);
        wait_for_words_of(&f, PS_0 + k);
    }
    hears(&f, PS_0, BEL__MESSAGE__KIND_STOP); // and nothing before it
    hears(&f, PS_1, BEL__MESSAGE__KIND_SAVE);
    bel_free(answer.part.data);
    bel_ckpt_shard_destroy(saved[0]);
    bel_ckpt_shard_destroy(part);
    tear_down(&f);
}

// --- Returning members ---------------------------------------------------------------------------

static bool admission_is_over(const fixture *f)
{
    return !f->master->admissions[1].under_way;
}

// Worker 1 joins again. Shard 0 reports the last step in which its predecessor counted, shard 1
// reports that it is at step 14.
static void readmit(fixture *f, int64_t counted)
{
    set_up(f, (bel_counting){.kind = BEL_COUNTING_ASYNC, .workers = 1});
    record_assignment(f);
    for (int i = 0; i < PEERS; i++)
        join(f, i, i == WORKER_1 ? 0 : 1, 15);
    start(f);
    for (int k = 0; k < SHARDS; k++) {
        hears(f, PS_0 + k, BEL__MESSAGE__KIND_ADMIT);
        say(f, PS_0 + k,
            BEL_TEST_KIND(Admitted, admitted, .worker = 1, .step = k == 0 ? 15 : 14,
                          .counted_step = k == 0 ? counted : -1));
    }
    wait_until(f, admission_is_over);
}

// With a ledger a worker may have counted in a step that some shard has not finished. Without the
// worker's report that step cannot be finished.
static void test_lost_in_the_middle(void **state)
{
    (void)state;
    fixture f;
    readmit(&f, 14);
    assert_true(f.master->backend.lost);
    tear_down(&f);
    readmit(&f, 13);
    assert_false(f.master->backend.lost);
    Bel__Message *setup = heard(&f, WORKER_1);
    assert_int_equal(setup->kind_case, BEL__MESSAGE__KIND_SETUP);
    assert_int_equal(setup->setup->step, 14);
    bel_message_destroy(setup);
    tear_down(&f);
}

// --- Generations ---------------------------------------------------------------------------------

static void expect_new_generation(fixture *f, uint32_t generation)
{
    uint32_t written;
    assert_false(f->master->backend.runs);
    for (int i = 0; i < PEERS; i++) {
        Bel__Message *setup = heard(f, i);
        assert_int_equal(setup->kind_case, BEL__MESSAGE__KIND_SETUP);
        assert_int_equal(setup->generation, generation);
        bel_message_destroy(setup);
    }
    BEL_ASSERT_OK(bel_journal_generation(f->folder, &written));
    assert_int_equal(written, generation);
}

// A new generation is above every generation of the journal and the members, and is written to the
// journal.
static void test_generations_rise(void **state)
{
    (void)state;
    fixture f;
    for (uint32_t journal = 3; journal <= 7; journal += 4) {
        set_up(&f, (bel_counting){.kind = BEL_COUNTING_ALL});
        const bel_journal_line line = {.event = "generation", .generation = journal, .text = ""};
        BEL_ASSERT_OK(bel_journal_write(f.folder, &line));
        for (int i = 0; i < PEERS; i++)
            join(&f, i, i == PS_1 ? 0 : 5, FIRST); // shard 1 lost its state
        start(&f);
        expect_new_generation(&f, journal == 3 ? 6 : 8);
        tear_down(&f);
    }
}

// The state of the shards is void after the master returned to a checkpoint.
static void test_state_that_is_void(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, (bel_counting){.kind = BEL_COUNTING_ALL});
    f.master->plan.begins_anew = true; // as after a reload because of a loss
    for (int i = 0; i < PEERS; i++)
        join(&f, i, 5, FIRST);
    start(&f);
    expect_new_generation(&f, 6);
    tear_down(&f);
}

// A guess of who plays which replicas could differ from what the members do.
static void test_an_unknown_assignment(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, (bel_counting){.kind = BEL_COUNTING_ALL}); // a journal without a line
    for (int i = 0; i < PEERS; i++)
        join(&f, i, 1, FIRST);
    start(&f);
    expect_new_generation(&f, 2);
    tear_down(&f);
}

// A role limits its member's messages: another role's message ends the job.
static void test_what_is_not_its_to_say(void **state)
{
    (void)state;
    static const struct {
        int peer;
        const char *message;
    } cases[] = {{WORKER_1, "worker 1 sent the master a message of kind progress,"},
                 {PS_1, "ps 1 sent the master a message of kind progress,"},
                 {WORKER_0, "worker 0 sent the master a message of kind snapshot,"},
                 {EVALUATOR, "evaluator 0 sent the master a message of kind saved,"},
                 {WORKER_0, "worker 0 sent the master a message of kind admitted,"},
                 {PS_0, "ps 0 sent the master a message of kind batch,"},
                 {WORKER_1, "worker 1 sent the master a message of kind evaluated,"},
                 {PS_0, "ps 0 sent the master a message of kind finish,"},
                 {WORKER_0, "worker 0 sent the master a message of kind fetch,"},
                 {EVALUATOR, "evaluator 0 sent the master a message of kind piece,"}};
    const ProtobufCMessage *kinds[] = {BEL_TEST_KIND(Progress, progress, .step = LAST),
                                       BEL_TEST_KIND(Progress, progress, .step = LAST),
                                       BEL_TEST_KIND(Snapshot, snapshot, .step = LAST),
                                       BEL_TEST_KIND(Saved, saved, .step = LAST),
                                       BEL_TEST_KIND(Admitted, admitted, .step = LAST),
                                       BEL_TEST_KIND(Batch, batch, .step = LAST),
                                       BEL_TEST_KIND(Evaluated, evaluated, .step = LAST),
                                       BEL_TEST_KIND(Finish, finish, .step = LAST),
                                       BEL_TEST_KIND(Fetch, fetch, .step = LAST),
                                       BEL_TEST_KIND(Piece, piece, .step = LAST)};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        take_over(&f, FIRST);
        say(&f, cases[i].peer, kinds[i]);
        wait_until(&f, error_is_there);
        bel_status *error = bel_remote_take_error(f.master);
        BEL_ASSERT_FAILS(error, BEL_INTERNAL, cases[i].message);
        assert_true(f.master->state.step != LAST && f.master->ended.count == 0);
        tear_down(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_a_request_survives_no_loss),
        cmocka_unit_test(test_files_of_a_late_folder),
        cmocka_unit_test(test_malformed_evaluations),
        cmocka_unit_test(test_what_is_not_its_to_say),
        cmocka_unit_test(test_an_old_snapshot),
        cmocka_unit_test(test_a_release_that_was_lost),
        cmocka_unit_test(test_the_last_snapshot_is_waited_for),
        cmocka_unit_test(test_a_join_does_not_end_training),
        cmocka_unit_test(test_nobody_saves_twice),
        cmocka_unit_test(test_lost_in_the_middle),
        cmocka_unit_test(test_generations_rise),
        cmocka_unit_test(test_state_that_is_void),
        cmocka_unit_test(test_an_unknown_assignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
