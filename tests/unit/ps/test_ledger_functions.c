// Steps by two step functions, made from some workers' reports, against double arithmetic on every
// number of shards. Covers the function assigned to a worker, the reports that make a step, and the
// variables that a step leaves unchanged.
#include "unit/ps/test_cluster.h"

#include <math.h>

static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.5};
static const int replicas_of[] = {2, 2, 1};
enum { WORKERS = 3, LAST = 100, GENERATOR = 1 };
static const bel_counting two_of_three = {.kind = BEL_COUNTING_BACKUPS, .workers = 2};
static const bel_counting as_they_come = {.kind = BEL_COUNTING_ASYNC, .workers = 1};

static cluster *create(int shards, bel_counting counting, const int *functions, int asked)
{
    step_functions = functions;
    cluster *c = cluster_create_counting(shards, replicas_of, WORKERS, sgd, LAST, counting);
    c->asked = asked;
    while (work_for_shards(c)) {
    }
    return c;
}

static void destroy(cluster *c)
{
    cluster_destroy(c);
    step_functions = NULL;
}

static void is_handed(cluster *c, int worker, int64_t after, int64_t version, int function)
{
    uint32_t decision;
    BEL_ASSERT_OK(bel_client_wait_next(c->clients[worker], &after, &decision));
    assert_int_equal(after, version);
    assert_int_equal(decision, bel_decision_with(0, function));
}

static void nothing_comes(cluster *c, int worker, int64_t after)
{
    uint32_t decision;
    BEL_ASSERT_FAILS(bel_client_wait_next(c->clients[worker], &after, &decision),
                     BEL_DEADLINE_EXCEEDED, "no progress");
}

static void report(cluster *c, int worker, int64_t version, int function)
{
    report_part_of(c, worker, version, function, INT_MAX);
    while (work_for_shards(c)) {
    }
}

typedef struct made_step {
    int function;
    int workers[2];  // -1: none
    int64_t version; // on which they computed
} made_step;

static double expected_value(const cluster *c, const made_step *steps, int count, int v, int64_t i)
{
    const bel_layout_variable *variable = &c->layout->variables[v];
    double value = (double)((float)(i % 101) / 50.0f - 1.0f);
    for (int s = 0; s < count; s++) {
        if ((variable->kept_by >> steps[s].function & 1) != 0) continue;
        double sum = 0, replicas = 0;
        for (int k = 0; k < 2 && steps[s].workers[k] >= 0; k++) {
            int w = steps[s].workers[k];
            for (int r = c->assignment->first_replica[w]; r < c->assignment->first_replica[w + 1];
                 r++, replicas++)
                sum += (double)report_element(r, steps[s].version, i);
        }
        if (variable->kind == BEL_VARIABLE_TRAINABLE) value -= 0.5 * sum / replicas;
        if (variable->kind == BEL_VARIABLE_STATE_MEAN) value = sum / replicas;
        if (variable->kind == BEL_VARIABLE_STATE_SUM) value += sum;
    }
    return value;
}

static void worker_has(const cluster *c, int worker, const made_step *steps, int count)
{
    for (int v = 0; v < c->layout->variable_count; v++) {
        const bel_layout_variable *variable = &c->layout->variables[v];
        for (int64_t i = variable->offset; i < variable->offset + variable->elements; i++) {
            double expected = expected_value(c, steps, count, v, i);
            if (fabs((double)c->outboxes[worker][i] - expected) > 1e-5)
                fail_msg("%s, element %lld", variable->name, (long long)i);
        }
    }
}

// Three workers compute three steps at a time. The steps are made in the order of the requests: a
// report for a later step waits.
static void functions_are_handed_out_ahead(void **state)
{
    (void)state;
    static const int functions[] = {0, GENERATOR, 0, 0, GENERATOR, 0, 0};
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = create(shards, as_they_come, functions, 7);
        is_handed(c, 0, -1, 0, 0);
        is_handed(c, 1, -1, 0, GENERATOR);
        is_handed(c, 2, -1, 0, 0);
        report(c, 1, 0, GENERATOR);
        nothing_comes(c, 1, 0); // step 0 uses the other function
        report(c, 2, 0, 0);     // and is made from the first report of it
        is_handed(c, 2, 0, 1, 0);
        is_handed(c, 1, 0, 2, GENERATOR);
        const made_step steps[] = {{0, {2, -1}, 0}, {GENERATOR, {1, -1}, 0}, {0, {0, -1}, 0}};
        worker_has(c, 2, steps, 1);
        worker_has(c, 1, steps, 2);
        report(c, 0, 0, 0);
        is_handed(c, 0, 0, 3, 0);
        worker_has(c, 0, steps, 3);
        destroy(c);
    }
}

// A loop that waits for each step before it asks for the next: workers take turns.
static void nobody_computes_what_is_not_asked_for(void **state)
{
    (void)state;
    static const int functions[] = {GENERATOR, 0, 0, GENERATOR};
    cluster *c = create(2, as_they_come, functions, 1);
    is_handed(c, 0, -1, 0, GENERATOR);
    nothing_comes(c, 1, -1);
    report(c, 0, 0, GENERATOR);
    nothing_comes(c, 0, 0);
    c->asked = 3;
    is_handed(c, 1, -1, 1, 0);
    is_handed(c, 2, -1, 1, 0);
    nothing_comes(c, 0, 0);
    c->asked = 4;
    is_handed(c, 0, 0, 1, GENERATOR);
    destroy(c);
}

// A lost worker's function is assigned again before those requested later.
static void function_of_a_lost_worker_is_handed_out_again(void **state)
{
    (void)state;
    static const int functions[] = {0, GENERATOR, 0, 0, 0};
    cluster *c = create(2, as_they_come, functions, 5);
    is_handed(c, 0, -1, 0, 0);
    is_handed(c, 1, -1, 0, GENERATOR);
    is_handed(c, 2, -1, 0, 0);
    report_part_of(c, 1, 0, GENERATOR, 2);
    (void)replace_worker(c, 1, 1);
    is_handed(c, 1, -1, 0, GENERATOR);
    report(c, 0, 0, 0);
    is_handed(c, 0, 0, 1, 0);
    destroy(c);
}

static void backups_compute_the_step_that_is_made(void **state)
{
    (void)state;
    static const int functions[] = {0, GENERATOR, 0};
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = create(shards, two_of_three, functions, 3);
        for (int w = 0; w < WORKERS; w++)
            is_handed(c, w, -1, 0, 0);
        report(c, 0, 0, 0);
        report(c, 1, 0, 0);
        is_handed(c, 0, 0, 1, GENERATOR);
        is_handed(c, 1, 0, 1, GENERATOR);
        report(c, 2, 0, 0); // too late
        is_handed(c, 2, 0, 1, GENERATOR);
        report(c, 1, 1, GENERATOR);
        report(c, 2, 1, GENERATOR);
        is_handed(c, 2, 1, 2, 0);
        const made_step steps[] = {{0, {0, 1}, 0}, {GENERATOR, {1, 2}, 1}};
        worker_has(c, 2, steps, 2);
        destroy(c);
    }
}

static void reports_of_another_function_are_refused(void **state)
{
    (void)state;
    static const int functions[] = {0, GENERATOR, 0};
    const bel_counting countings[] = {as_they_come, two_of_three};
    for (size_t i = 0; i < sizeof countings / sizeof countings[0]; i++) {
        cluster *c = create(1, countings[i], functions, 3);
        is_handed(c, 0, -1, 0, 0);
        report(c, 0, 0, GENERATOR);
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL, "that it was not handed");
        destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_handed_out_ahead),
        cmocka_unit_test(nobody_computes_what_is_not_asked_for),
        cmocka_unit_test(function_of_a_lost_worker_is_handed_out_again),
        cmocka_unit_test(backups_compute_the_step_that_is_made),
        cmocka_unit_test(reports_of_another_function_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
