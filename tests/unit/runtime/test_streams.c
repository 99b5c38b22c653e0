// Streams: the costs stated in TFRT's tests, and invariants for any graph.
#include "base/alloc.h"
#include "base/rng.h"
#include "runtime/streams.h"
#include "support/bel_test.h"

enum { MOST = 200, MOST_EDGES = 4 };

typedef struct node {
    int64_t cost;
    int edge_count;
    bel_dag_edge edges[MOST_EDGES];
} node;

#define DATA(n)                                                                                    \
    {                                                                                              \
        .from = (n), .data = true                                                                  \
    }
#define ORDER(n)                                                                                   \
    {                                                                                              \
        .from = (n)                                                                                \
    }

static bel_dag make_dag(const node *nodes, int count)
{
    bel_dag dag = {.node_count = count};
    dag.costs = bel_xcalloc((size_t)count, sizeof *dag.costs);
    dag.first_edges = bel_xcalloc((size_t)count + 1, sizeof *dag.first_edges);
    dag.edges = bel_xcalloc((size_t)count * MOST_EDGES, sizeof *dag.edges);
    for (int n = 0; n < count; n++) {
        dag.costs[n] = nodes[n].cost;
        dag.first_edges[n + 1] = dag.first_edges[n] + nodes[n].edge_count;
        for (int e = 0; e < nodes[n].edge_count; e++)
            dag.edges[dag.first_edges[n] + e] = nodes[n].edges[e];
    }
    return dag;
}

// `expected` has the cost of each node's stream; equal costs show which nodes share one.
static void check_costs(const node *nodes, int count, const bel_stream_options *options,
                        const int64_t *expected, int stream_count)
{
    bel_dag dag = make_dag(nodes, count);
    bel_streams streams;
    bel_streams_pack(&dag, options, &streams);
    assert_int_equal(streams.count, stream_count);
    for (int n = 0; n < count; n++)
        assert_int_equal(streams.items[streams.stream_of[n]].cost, expected[n]);
    bel_streams_deinit(&streams);
    bel_dag_deinit(&dag);
}

// Two chains of three nodes, and one node that reads both.
static void test_chains(void **state)
{
    (void)state;
    static const node nodes[] = {
        {5, 0, {{0}}},     {5, 1, {DATA(0)}}, {5, 1, {DATA(1)}},          {5, 0, {{0}}},
        {5, 1, {DATA(3)}}, {5, 1, {DATA(4)}}, {5, 2, {DATA(2), DATA(5)}},
    };
    static const int64_t expected[] = {22, 22, 22, 15, 15, 15, 22};
    check_costs(nodes, 7, &(bel_stream_options){.thread_count = 2, .threshold = 5}, expected, 2);
    static const int64_t one[] = {37, 37, 37, 37, 37, 37, 37};
    check_costs(nodes, 7, &(bel_stream_options){.thread_count = 1, .threshold = 5}, one, 1);
}

static void test_independent_nodes(void **state)
{
    (void)state;
    static const node nodes[] = {{10, 0, {{0}}}, {10, 0, {{0}}}, {10, 0, {{0}}}};
    static const int64_t expected[] = {12, 10, 10};
    check_costs(nodes, 3, &(bel_stream_options){.thread_count = 2, .threshold = 10}, expected, 3);
}

// Cheap nodes are merged until they are worth another thread; the last ones remain.
static void test_cheap_nodes(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    bel_dag_edge all[] = {ORDER(0), ORDER(1), ORDER(2), ORDER(3), ORDER(4)};
    int64_t costs[] = {4, 4, 11, 4, 4, 1};
    int first_edges[] = {0, 0, 0, 0, 0, 0, 5};
    bel_dag dag = {COUNT, costs, first_edges, all};
    bel_streams streams;
    bel_streams_pack(&dag, &(bel_stream_options){.thread_count = 2, .threshold = 10}, &streams);
    static const int64_t expected[] = {12, 12, 18, 12, 18, 18};
    assert_int_equal(streams.count, 2);
    for (int n = 0; n < COUNT; n++)
        assert_int_equal(streams.items[streams.stream_of[n]].cost, expected[n]);
    bel_streams_deinit(&streams);
}

static void test_dependent_streams(void **state)
{
    (void)state;
    static const node nodes[] = {
        {5, 0, {{0}}}, // 0, 1, 2: streams that read each other's values
        {5, 0, {{0}}},
        {1, 2, {DATA(0), DATA(1)}},
        {5, 0, {{0}}}, // 3 to 6: the same
        {5, 0, {{0}}},
        {1, 2, {DATA(3), DATA(4)}},
        {1, 2, {DATA(3), DATA(4)}},
        {5, 0, {{0}}}, // 7 to 10: two streams tied to others only by order
        {1, 1, {DATA(7)}},
        {5, 0, {{0}}},
        {1, 1, {DATA(9)}},
        {1, 4, {DATA(5), DATA(6), ORDER(8), ORDER(10)}},
        {1, 2, {DATA(2), DATA(11)}},
    };
    static const int64_t expected[] = {11, 11, 11, 16, 16, 16, 16, 12, 12, 12, 12, 16, 16};
    const bel_stream_options options = {
        .thread_count = 2, .threshold = 10, .merge_dependent = true};
    check_costs(nodes, 13, &options, expected, 3);
}

static void test_automatic_threshold(void **state)
{
    (void)state;
    static const node nodes[] = {
        {4, 0, {{0}}},     {4, 1, {DATA(0)}},
        {4, 1, {DATA(1)}}, {4, 1, {DATA(2)}},
        {4, 1, {DATA(3)}}, {4, 0, {{0}}},
        {4, 0, {{0}}},     {4, 0, {{0}}},
        {4, 0, {{0}}},     {100, 4, {DATA(5), DATA(7), DATA(8), DATA(4)}},
    };
    static const int64_t expected[] = {122, 122, 122, 122, 122, 16, 16, 16, 16, 122};
    check_costs(nodes, 10, &(bel_stream_options){.thread_count = 2}, expected, 2);
}

static void test_one_node(void **state)
{
    (void)state;
    static const node rsqrt = {512, 0, {{0}}};
    static const int64_t expected = 514;
    check_costs(&rsqrt, 1, &(bel_stream_options){.thread_count = 2, .threshold = 1}, &expected, 1);
    check_costs(NULL, 0, &(bel_stream_options){.thread_count = 2}, NULL, 1);
}

static uint32_t random_number(uint64_t high, uint64_t low)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{31, 32}}, high, low, words);
    return words[0];
}

// Checks that every node is in one stream, streams are in order, and costs add up.
static void check_streams(const bel_dag *dag, const bel_streams *streams)
{
    int seen[MOST] = {0}, nodes = 0;
    for (int s = 0; s < streams->count; s++) {
        int64_t cost = s == 0 ? 2 : 0;
        const bel_stream *stream = &streams->items[s];
        assert_int_equal(stream->first, nodes);
        for (int i = 0; i < stream->count; i++) {
            int n = streams->nodes[stream->first + i];
            if (i > 0) assert_true(n > streams->nodes[stream->first + i - 1]);
            assert_int_equal(streams->stream_of[n], s);
            cost += dag->costs[n];
            seen[n]++;
        }
        assert_int_equal(stream->cost, cost);
        assert_true(s == 0 || stream->count > 0);
        nodes += stream->count;
    }
    assert_int_equal(nodes, dag->node_count);
    for (int n = 0; n < dag->node_count; n++)
        assert_int_equal(seen[n], 1);
}

static void test_random_graphs(void **state)
{
    (void)state;
    for (uint64_t g = 0; g < 60; g++) {
        node nodes[MOST] = {{0}};
        int count = 1 + (int)(random_number(g, 0) % MOST);
        for (int n = 0; n < count; n++) {
            uint64_t at = 16 * (uint64_t)(n + 1);
            nodes[n].cost = 1 + random_number(g, at) % 100;
            nodes[n].edge_count = n == 0 ? 0 : (int)(random_number(g, at + 1) % MOST_EDGES);
            for (int e = 0; e < nodes[n].edge_count; e++) {
                uint32_t from = random_number(g, at + 2 + (uint64_t)e);
                nodes[n].edges[e] = (bel_dag_edge){(int)(from % (uint32_t)n), from % 7 > 0};
            }
        }
        bel_dag dag = make_dag(nodes, count);
        const int64_t thresholds[] = {0, 1, 50, 1 << 20};
        for (int t = 0; t < 8; t++) {
            bel_streams streams;
            const bel_stream_options options = {
                .thread_count = 2, .threshold = thresholds[t / 2], .merge_dependent = t % 2 == 1};
            bel_streams_pack(&dag, &options, &streams);
            check_streams(&dag, &streams);
            if (t / 2 == 3) assert_int_equal(streams.count, 1); // no stream is worth another thread
            bel_streams_deinit(&streams);
        }
        bel_dag_deinit(&dag);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_independent_nodes),
        cmocka_unit_test(test_cheap_nodes),
        cmocka_unit_test(test_dependent_streams),
        cmocka_unit_test(test_automatic_threshold),
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
