// End of a finite input if steps are made from some workers' reports. Whichever worker is fast,
// dies or has no blocks left, no worker waits forever. With one step function and with two.
// label: long (the sanitized build has the other tests of the ledger)
#include "unit/ps/test_cluster.h"

static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.5};
enum { WORKERS = 3, LAST = 100, MOST_BLOCKS = 64 };
// Numbers of replicas. They may differ only if each worker gets its blocks back, as a lease is as
// large as the worker's replicas.
static const int different[WORKERS] = {2, 2, 1}, alike[WORKERS] = {1, 1, 1};

// Workers that compute in any order, until they receive the end.
typedef struct players {
    cluster *c;
    int64_t versions[WORKERS], steps[WORKERS]; // on which they compute; number of steps computed
    int functions[WORKERS];                    // functions of the present or last steps
    bool done[WORKERS];
    int used[MOST_BLOCKS]; // number of reports of each block
} players;

static bool take_answer(players *p, int w)
{
    uint32_t decision;
    int64_t version = p->versions[w];
    bel_status *status = bel_client_wait_next(p->c->clients[w], &version, &decision);
    bool got = status == NULL;
    if (!got) assert_int_equal(bel_status_code(status), BEL_CANCELLED);
    bel_status_ignore(status); // it has to wait
    if (!got) return false;
    p->versions[w] = version;
    p->done[w] = (decision & BEL_DECIDE_STOP) != 0;
    if (!p->done[w]) p->functions[w] = bel_decision_function(decision);
    return true;
}

static void work(cluster *c)
{
    while (work_for_shards(c)) {
    }
}

// Every worker takes its answers until no more arrive.
static void take_answers(players *p, bool *waits)
{
    for (int quiet = 0; quiet < 3; quiet++) { // a shard asks others after the first answer
        work(p->c);
        for (int w = 0; w < WORKERS; w++)
            if (waits[w] && !p->done[w] && take_answer(p, w)) {
                waits[w] = false;
                quiet = 0;
            }
    }
}

static bool has_blocks(const players *p, int w)
{
    return bel_client_lease(p->c->clients[w], p->steps[w]) >= 0;
}

static void compute(players *p, int w)
{
    int64_t first = bel_client_lease(p->c->clients[w], p->steps[w]++);
    for (int i = 0; i < bel_assignment_replicas(p->c->assignment, w); i++)
        p->used[first + i]++;
    report_part_of(p->c, w, p->versions[w], p->functions[w], INT_MAX);
}

// Asks for one more step, like a loop that decides on its last step by the newest one. False: steps
// already asked for are not made.
static bool ask_for_one(players *p)
{
    if (step_functions == NULL || p->c->asked > p->c->decided) return false;
    p->c->asked++;
    return true;
}

static void lose(players *p, int w)
{
    report_part_of(p->c, w, p->versions[w], p->functions[w], 2);
    (void)replace_worker(p->c, w, 1);
    p->versions[w] = -1;
    p->steps[w] = 0;
}

// Plays to the end in an order that follows from `order`. Workers in the bits of `lost` die once,
// in the middle of a step, when their blocks may be the last. Fails if all workers wait forever.
static void play_to_the_end(players *p, uint32_t order, uint32_t lost)
{
    bool waits[WORKERS] = {true, true, true};
    p->c->polls = true;
    for (uint32_t turn = 0;; turn++) {
        uint32_t chance = order * 2654435761u >> turn % 28;
        if (p->c->asked < LAST) p->c->asked += (int)(chance / 4 % 3); // or fewer than made
        take_answers(p, waits);
        int ready[WORKERS], count = 0;
        bool all_done = true;
        for (int w = 0; w < WORKERS; w++) {
            all_done = all_done && p->done[w];
            if (waits[w] || p->done[w]) continue;
            waits[w] = !has_blocks(p, w); // waits for another version: the end
            if (!waits[w]) ready[count++] = w;
        }
        if (all_done) return;
        if (count == 0 && ask_for_one(p)) continue;
        if (count == 0) fail_msg("order %u, turn %u: everybody waits", order, turn);
        if (lost == 0 || turn <= order % 29) {
            int w = ready[chance % (uint32_t)count];
            compute(p, w);
            waits[w] = true;
        } else {
            for (int w = 0; w < WORKERS; w++) { // all die before any restarts
                if ((lost >> w & 1) == 0 || waits[w] || p->done[w]) continue;
                lose(p, w);
                waits[w] = true;
            }
            lost = 0;
        }
    }
}

// Without step functions all blocks are read, and all reports count or are dropped. With them a
// report remains only if the next step uses another function.
static void check_left(const players *p, int64_t blocks, bool lost)
{
    for (int64_t b = 0; b < blocks; b++)
        assert_in_range(p->used[b], step_functions == NULL, 1);
    for (int w = 0; w < WORKERS && !lost; w++) {
        bel_shard_reports reports = bel_shard_count_reports(p->c->shards[0], w);
        if (reports.counted + reports.dropped == p->steps[w]) continue;
        assert_int_equal(reports.counted + reports.dropped, p->steps[w] - 1);
        assert_non_null(step_functions);
        assert_int_not_equal(p->functions[w], step_functions[p->c->decided]);
    }
}

static void check_end(uint32_t order, int shards, bel_counting counting, int64_t blocks,
                      uint32_t lost)
{
    block_end = blocks;
    bool several_lost = (lost & (lost - 1)) != 0;
    const int *replicas_of = step_functions != NULL || several_lost ? alike : different;
    players p = {.c = cluster_create_counting(shards, replicas_of, WORKERS, sgd, LAST, counting),
                 .versions = {-1, -1, -1}};
    play_to_the_end(&p, order, lost);
    const bel_shard_staleness staleness = bel_shard_stale(p.c->shards[0], NULL);
    int64_t counted = 0;
    for (int i = 0; i < BEL_STALENESS_BINS; i++)
        counted += staleness.counted[i];
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(p.versions[w], p.c->decided); // all received the same last version
    check_left(&p, blocks, lost != 0);
    bool takes_stale = bel_counting_takes_stale(&counting);
    if (takes_stale) assert_int_equal(staleness.dropped, 0);
    if (takes_stale && counting.workers == 1) assert_int_equal(counted, p.c->decided);
    cluster_destroy(p.c);
    block_end = INT64_MAX;
}

static void play_all(void)
{
    const bel_counting countings[] = {
        {.kind = BEL_COUNTING_ASYNC, .workers = 1},
        {.kind = BEL_COUNTING_BACKUPS, .workers = 2},
        {.kind = BEL_COUNTING_ASYNC, .workers = 2},
        {.kind = BEL_COUNTING_ASYNC, .workers = 3},
        {.kind = BEL_COUNTING_BOUNDED, .workers = 1, .max_lead = 0},
        {.kind = BEL_COUNTING_BOUNDED, .workers = 1, .max_lead = 1},
        {.kind = BEL_COUNTING_BOUNDED, .workers = 2, .max_lead = 0},
        {.kind = BEL_COUNTING_BOUNDED, .workers = 3, .max_lead = 0},
    };
    for (size_t k = 0; k < sizeof countings / sizeof countings[0]; k++)
        for (uint32_t order = 0; order < 120; order++) {
            if (bel_test_spares((int)order)) continue;
            int shards = 1 + (int)(order % 2);
            check_end(order, shards, countings[k], 1 + order * 5 % 23, order / 2 % 8);
        }
}

// Every block is read, remaining reports count, and all workers receive the end. (The last blocks
// of a worker may be missing.)
static void input_ends_for_everybody(void **state)
{
    (void)state;
    play_all();
}

// The same with a loop that asks for steps of two functions, one by one or ahead.
static void input_ends_in_the_middle_of_a_pattern(void **state)
{
    (void)state;
    static const int periods[] = {2, 5}; // the last step of each uses the other function
    int functions[2 * LAST];
    step_functions = functions;
    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        for (int s = 0; s < 2 * LAST; s++)
            functions[s] = s % periods[i] == periods[i] - 1;
        play_all();
    }
    step_functions = NULL;
}

// --- Steps requested while a version is published ------------------------------------------------

static void ask(cluster *c, int64_t version)
{
    assert_true(bel_control_ask(c->control, version, step_functions[version], true));
}

static bel_control *control_of(cluster *c,
                               void (*made)(void *context, const bel_control_made *made))
{
    return bel_control_create(&(bel_control_config){.shard_count = c->layout->shard_count,
                                                    .last_step = LAST,
                                                    .worker_count = WORKERS,
                                                    .asks = true,
                                                    .made = made,
                                                    .made_context = c});
}

// A loop that learns of a step, and asks for the next one, before control gives up waiting for it.
static void ask_when_told(void *context, const bel_control_made *made)
{
    ask(context, made->version);
}

static bel_control *answered_at_once(cluster *c)
{
    c->control = control_of(c, ask_when_told);
    ask(c, 0);
    return c->control;
}

// A loop that asks after the shard has checked the remaining input, and before control has.
static void ask_when_published(cluster *c, int64_t version)
{
    if (bel_control_function_of(c->control, version) < 0) ask(c, version);
}

static void pass_over(void *context, const bel_control_made *made)
{
    (void)context, (void)made;
}

static bel_control *asked_between(cluster *c)
{
    c->while_publishing = ask_when_published;
    return control_of(c, pass_over);
}

// The shard checks the remaining input again when it knows the step's function.
static void input_ends_while_a_step_is_asked_for(void **state)
{
    (void)state;
    int functions[2 * LAST];
    for (int s = 0; s < 2 * LAST; s++)
        functions[s] = s % 2;
    step_functions = functions;
    bel_control *(*const loops[])(cluster * c) = {answered_at_once, asked_between};
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        make_control = loops[i];
        play_all();
    }
    make_control = NULL;
    step_functions = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_ends_for_everybody),
        cmocka_unit_test(input_ends_in_the_middle_of_a_pattern),
        cmocka_unit_test(input_ends_while_a_step_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
