// Shard 0 and the pieces of collectives that workers send: calls that no longer match, and frames
// that no worker could have sent. (Values: tests/equal/test_collectives.c.)
#include "ps/layout/exchange.h"
#include "ps/layout/row_buffer.h"
#include "unit/ps/test_cluster.h"

enum { ELEMENTS = 6 };

typedef struct contribution {
    bel_exchange_head head;
    bel_exchange_slot slots[2];
    float values[2][ELEMENTS];
} contribution;

// A sum of [2, 3] for the two nodes of a worker with three replicas, or for one node.
static contribution make(int first, int nodes)
{
    contribution c = {.head = {.kind = BEL_EXCHANGE_REDUCE,
                               .reduce = BEL_REDUCE_SUM,
                               .dtype = BEL_DTYPE_F32,
                               .line = 7,
                               .slots = nodes,
                               .rank = 2,
                               .dims = {2, 3},
                               .total = ELEMENTS,
                               .elements = ELEMENTS,
                               .file = "model.c"}};
    for (int i = 0; i < nodes; i++)
        c.slots[i] = (bel_exchange_slot){first + 2 * i, 1, 1};
    return c;
}

static cluster *begin(void)
{
    static const int replicas_of[] = {3, 2};
    static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    with_exchanges = true;
    cluster *c = cluster_create(1, replicas_of, 2, sgd, 1);
    c->polls = true;
    while (work_for_shards(c)) {
    }
    return c;
}

// Stores the answer at *out_answer; returns CANCELLED instead of waiting for it.
static bel_status *send(cluster *c, int worker, const contribution *what, const char **out_answer)
{
    char *room = bel_client_exchange_room(c->clients[worker]);
    size_t slots = (size_t)what->head.slots;
    memcpy(room, &what->head, sizeof what->head);
    memcpy(room + sizeof what->head, what->slots, slots * sizeof *what->slots);
    memcpy(room + sizeof what->head + slots * sizeof *what->slots, what->values,
           slots * sizeof *what->values);
    bel_client_piece piece = {.bytes = bel_exchange_sent(&what->head),
                              .answer_bytes = bel_exchange_answered(&what->head, REPLICAS)};
    bel_status *status = bel_client_exchange(c->clients[worker], 0, 0, &piece, 1);
    if (out_answer != NULL) *out_answer = piece.answer;
    while (work_for_shards(c)) {
    }
    return status;
}

// Both workers' sums make one; the second worker finds it ready.
static void test_sum(void **state)
{
    (void)state;
    cluster *c = begin();
    contribution one = make(0, 2), other = make(3, 1);
    one.values[0][1] = 3;
    one.values[1][1] = 4;
    other.values[0][1] = 5;
    BEL_ASSERT_FAILS(send(c, 0, &one, NULL), BEL_CANCELLED, "");
    c->polls = false;
    const char *answer;
    BEL_ASSERT_OK(send(c, 1, &other, &answer));
    BEL_ASSERT_OK(bel_shard_check(c->shards[0]));
    bel_exchange_slot all;
    float sum[ELEMENTS];
    memcpy(&all, answer, sizeof all);
    memcpy(sum, answer + sizeof all, sizeof sum);
    assert_int_equal(all.replicas, 3);
    assert_true(sum[0] == 0 && sum[1] == 12);
    cluster_destroy(c);
}

// The same number of elements in another shape is another collective. So is another line, type or
// reduction.
static void test_other_calls(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        cluster *c = begin();
        contribution one = make(0, 2), other = make(3, 1);
        const char *words = "worker 1 calls AllReduce of f32 [3, 2] at model.c:7";
        if (i == 0) {
            other.head.dims[0] = 3;
            other.head.dims[1] = 2;
        } else if (i == 1) {
            other.head.rank = 1;
            other.head.dims[0] = ELEMENTS;
            other.head.dims[1] = 0;
            words = "worker 1 calls AllReduce of f32 [6] at model.c:7";
        } else if (i == 2) {
            other.head.line = 8;
            words = "worker 1 calls AllReduce of f32 [2, 3] at model.c:8";
        } else if (i == 3) {
            other.head.dtype = BEL_DTYPE_I32;
            words = "worker 1 calls AllReduce of i32 [2, 3] at model.c:7";
        } else {
            other.head.kind = BEL_EXCHANGE_SCATTER;
            words = "worker 0 calls AllReduce of f32 [2, 3] at model.c:7, worker 1 calls "
                    "ReduceScatter of f32 [2, 3] at model.c:7";
        }
        BEL_ASSERT_FAILS(send(c, 0, &one, NULL), BEL_CANCELLED, "");
        BEL_ASSERT_FAILS(send(c, 1, &other, NULL), BEL_CANCELLED, "");
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INVALID_ARGUMENT, words);
        cluster_destroy(c);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const bel_exchange_slot bad[] = {{3, 1, 1}, {-1, 1, 1}, {2, 2, 2},
                                            {0, 0, 1}, {0, 2, 1},  {0, 1, (int64_t)1 << 41}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cluster *c = begin();
        contribution one = make(0, 1);
        one.slots[0] = bad[i];
        BEL_ASSERT_FAILS(send(c, 0, &one, NULL), BEL_CANCELLED, "");
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL,
                         "a slot that the worker cannot have");
        cluster_destroy(c);
    }
    for (int i = 0; i < 2; i++) {
        cluster *c = begin();
        contribution one = make(0, 1);
        one.head.rank = i == 0 ? -1 : BEL_MAX_RANK + 1;
        BEL_ASSERT_FAILS(send(c, 0, &one, NULL), BEL_CANCELLED, "");
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL, "no such shape");
        cluster_destroy(c);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_other_calls),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
