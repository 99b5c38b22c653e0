// Prefetch: batches arrive in the requested order at every depth, errors arrive at their place, and
// stopping halfway ends. Maps run on several threads at once (label: threads).
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "unit/input/test_fixture.h"

enum { RECORDS = 64, BATCH = 4, BLOCKS = RECORDS / BATCH };

// Requests the blocks backwards, which shows that the order decides. Checks that the indices are
// requested one after the other.
typedef struct backwards {
    int64_t blocks;
    atomic_int_fast64_t asked;
    atomic_bool wrong;
} backwards;

static int64_t next_backwards(void *context, int64_t index)
{
    backwards *order = context;
    if (atomic_fetch_add(&order->asked, 1) != index) atomic_store(&order->wrong, true);
    return index < order->blocks ? order->blocks - 1 - index : -1;
}

// Gate that blocks every map until it opens, and a record at which the map fails.
typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_open;
    int waiting;
    int64_t bad; // -1: no such record
} gate;

static void gate_init(gate *it, bool is_open, int64_t bad)
{
    *it = (gate){.is_open = is_open, .bad = bad};
    pthread_mutex_init(&it->mutex, NULL);
    pthread_cond_init(&it->changed, NULL);
}

static void gate_deinit(gate *it)
{
    pthread_cond_destroy(&it->changed);
    pthread_mutex_destroy(&it->mutex);
}

static void gate_open(gate *it)
{
    pthread_mutex_lock(&it->mutex);
    it->is_open = true;
    pthread_cond_broadcast(&it->changed);
    pthread_mutex_unlock(&it->mutex);
}

static void gate_wait_for(gate *it, int threads)
{
    pthread_mutex_lock(&it->mutex);
    while (it->waiting < threads)
        pthread_cond_wait(&it->changed, &it->mutex);
    pthread_mutex_unlock(&it->mutex);
}

static bel_status *pass_gate(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    gate *it = user;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    pthread_mutex_lock(&it->mutex);
    it->waiting++;
    pthread_cond_broadcast(&it->changed);
    while (!it->is_open && id != 0) // record 0 is mapped when the dataset is opened
        pthread_cond_wait(&it->changed, &it->mutex);
    bool bad = id == it->bad;
    pthread_mutex_unlock(&it->mutex);
    return bad ? BEL_ERR(BEL_UNKNOWN, "a bad record") : NULL;
}

static bel_input *open_gated(int64_t *ids, gate *it, int depth, int thread_count)
{
    bel_dataset *dataset = numbered(ids, RECORDS);
    bel_dataset_map(dataset, pass_gate, it, NULL);
    bel_dataset_batch(dataset, BATCH);
    bel_dataset_prefetch(dataset, depth, thread_count);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    return input;
}

static void assert_block(const bel_input *input, const bel_batch *batch, int64_t block)
{
    assert_non_null(batch);
    assert_int_equal(batch->block, block);
    assert_int_equal(batch->example_count, BATCH);
    const int64_t *ids = batch_field(input, batch, "id")->data;
    for (int64_t i = 0; i < BATCH; i++)
        assert_int_equal(ids[i], block * BATCH + i);
}

static void test_delivers_in_order(void **state)
{
    (void)state;
    for (int depth = 0; depth <= 4; depth++) {
        for (int threads = 1; threads <= 4; threads++) {
            int64_t ids[RECORDS];
            gate it;
            gate_init(&it, true, -1);
            bel_input *input = open_gated(ids, &it, depth, threads);
            backwards order = {.blocks = BLOCKS};
            bel_prefetch *prefetch;
            const bel_batch *batch;
            BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
            for (int64_t i = 0; i < BLOCKS; i++) {
                const bel_batch *ahead = bel_prefetch_peek(prefetch);
                BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
                assert_block(input, batch, BLOCKS - 1 - i);
                assert_true(ahead == NULL || (ahead == batch && depth > 0));
            }
            for (int i = 0; i < 2; i++) { // the end repeats
                assert_null(bel_prefetch_peek(prefetch));
                BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
                assert_null(batch);
            }
            bel_prefetch_stop(prefetch);
            assert_false(atomic_load(&order.wrong));
            bel_input_destroy(input);
            gate_deinit(&it);
        }
    }
}

// bel_prefetch_peek shows a ready batch before it is taken, but not an error.
static void test_looks_ahead(void **state)
{
    (void)state;
    enum { PATIENCE_MS = 60000 };
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, BATCH * (BLOCKS - 2)); // in the second block from the end
    bel_input *input = open_gated(ids, &it, 4, 1);
    backwards order = {.blocks = BLOCKS};
    bel_prefetch *prefetch;
    const bel_batch *batch, *ahead = NULL;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
    for (int ms = 0; ahead == NULL && ms < PATIENCE_MS; ms++) {
        ahead = bel_prefetch_peek(prefetch);
        (void)poll(NULL, 0, 1);
    }
    assert_block(input, ahead, BLOCKS - 1);
    BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
    assert_ptr_equal(batch, ahead);
    gate_wait_for(&it, 3 * BATCH); // the bad block was read, marked ready or not
    assert_null(bel_prefetch_peek(prefetch));
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static void test_errors_come_at_their_place(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, 41); // in block 10, the sixth in order
    bel_input *input = open_gated(ids, &it, 3, 3);
    backwards order = {.blocks = BLOCKS};
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
    for (int64_t i = 0; i < 5; i++) {
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        assert_block(input, batch, BLOCKS - 1 - i);
    }
    BEL_ASSERT_FAILS(bel_prefetch_take(prefetch, &batch), BEL_UNKNOWN, "record 41: a bad record");
    BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch)); // the order continues after it
    assert_block(input, batch, 9);
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static void test_maps_run_on_all_threads(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, false, -1);
    bel_input *input = open_gated(ids, &it, 4, 4);
    backwards order = {.blocks = BLOCKS};
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
    gate_wait_for(&it, 1 + 4); // one passed at opening, four threads wait
    gate_open(&it);
    BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
    assert_block(input, batch, BLOCKS - 1);
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static void *open_now(void *argument)
{
    gate_open(argument);
    return NULL;
}

static void test_stops_in_the_middle(void **state)
{
    (void)state;
    for (int64_t takes = 0; takes < 4; takes++) {
        int64_t ids[RECORDS];
        gate it;
        gate_init(&it, true, -1);
        bel_input *input = open_gated(ids, &it, 2, 2);
        backwards order = {.blocks = BLOCKS};
        bel_prefetch *prefetch;
        const bel_batch *batch;
        BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
        for (int64_t i = 0; i < takes; i++)
            BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        bel_prefetch_stop(prefetch);
        bel_input_destroy(input);
        gate_deinit(&it);
    }
    bel_prefetch_stop(NULL);
}

// Both threads wait inside a map when bel_prefetch_stop is called. The gate opens only meanwhile.
static void test_stops_inside_of_maps(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, false, -1);
    bel_input *input = open_gated(ids, &it, 2, 2);
    backwards order = {.blocks = BLOCKS};
    bel_prefetch *prefetch;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
    gate_wait_for(&it, 1 + 2);
    pthread_t opener;
    assert_int_equal(pthread_create(&opener, NULL, open_now, &it), 0);
    bel_prefetch_stop(prefetch);
    pthread_join(opener, NULL);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static int64_t never(void *context, int64_t index)
{
    (void)context;
    (void)index;
    return -1;
}

static void test_an_empty_order_ends_at_once(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, -1);
    bel_input *input = open_gated(ids, &it, 2, 3);
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_ASSERT_OK(bel_prefetch_start(input, never, NULL, 1, NULL, 1, &prefetch));
    BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
    assert_null(batch);
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static int64_t same_block(void *context, int64_t index)
{
    (void)context;
    return index % 3 == 2 ? 1000 : 5;
}

// A block outside the stream is an error at its place. A batch stays valid until the next take.
static void test_any_order_and_the_batch_in_hand(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, -1);
    bel_input *input = open_gated(ids, &it, 1, 2);
    bel_prefetch *prefetch;
    const bel_batch *batch = NULL;
    BEL_ASSERT_OK(bel_prefetch_start(input, same_block, NULL, 1, NULL, 1, &prefetch));
    for (int round = 0; round < 30; round++) {
        if (round % 3 == 2) {
            BEL_ASSERT_FAILS(bel_prefetch_take(prefetch, &batch), BEL_OUT_OF_RANGE, "1000");
        } else {
            BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
            assert_block(input, batch, 5);
        }
    }
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static void gate_close(gate *it)
{
    pthread_mutex_lock(&it->mutex);
    it->is_open = false;
    pthread_mutex_unlock(&it->mutex);
}

typedef struct opener {
    gate *it;
    bel_prefetch *prefetch;
} opener;

static void *open_when_deeper(void *argument)
{
    opener *mine = argument;
    while (bel_prefetch_depth(mine->prefetch) == 4)
        (void)poll(NULL, 0, 1);
    gate_open(mine->it);
    return NULL;
}

// First every batch was ready, then none: the depth doubles.
static void test_automatic_depth(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, -1);
    bel_input *input = open_gated(ids, &it, BEL_PREFETCH_AUTO, 1);
    backwards order = {.blocks = BLOCKS};
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, NULL, 1, &prefetch));
    assert_int_equal(bel_prefetch_depth(prefetch), 4);
    // One record passed at opening. No batch is taken yet, so five are read. Four are certainly
    // ready when the last record of the fifth is mapped.
    gate_wait_for(&it, 1 + 5 * BATCH);
    gate_close(&it);
    int64_t taken = 0;
    for (; taken < 4; taken++) {
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        assert_block(input, batch, BLOCKS - 1 - taken);
    }
    assert_int_equal(bel_prefetch_depth(prefetch), 4);
    assert_true(bel_prefetch_bytes(prefetch) >= (int64_t)(4 * BATCH * sizeof(int64_t)));
    opener mine = {&it, prefetch};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_when_deeper, &mine), 0);
    for (; taken < BLOCKS; taken++) {
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        assert_block(input, batch, BLOCKS - 1 - taken);
    }
    pthread_join(thread, NULL);
    assert_true(bel_prefetch_depth(prefetch) >= 8);
    assert_false(atomic_load(&order.wrong));
    bel_prefetch_stop(prefetch);
    bel_input_destroy(input);
    gate_deinit(&it);
}

// Memory that was noted and is not freed yet.
typedef struct watched {
    pthread_mutex_t mutex;
    const char *memory[64];
    size_t bytes[64];
    int count, came;
} watched;

static void note(void *context, const void *memory, size_t bytes, bool there)
{
    watched *w = context;
    pthread_mutex_lock(&w->mutex);
    int at = 0;
    while (at < w->count && w->memory[at] != memory)
        at++;
    assert_int_equal(at == w->count, there);
    if (there) {
        w->memory[w->count] = memory;
        w->bytes[w->count++] = bytes;
        w->came++;
    } else {
        assert_true(bytes == w->bytes[at]);
        w->memory[at] = w->memory[--w->count];
        w->bytes[at] = w->bytes[w->count];
    }
    pthread_mutex_unlock(&w->mutex);
}

static bool is_noted(watched *w, const bel_tensor *field)
{
    bool noted = false;
    pthread_mutex_lock(&w->mutex);
    for (int i = 0; i < w->count; i++)
        noted = noted || (field->data == w->memory[i] && bel_tensor_bytes(field) <= w->bytes[i]);
    pthread_mutex_unlock(&w->mutex);
    return noted;
}

static void test_memory_is_noted(void **state)
{
    (void)state;
    int64_t ids[RECORDS];
    gate it;
    gate_init(&it, true, -1);
    bel_input *input = open_gated(ids, &it, 3, 2);
    backwards order = {.blocks = BLOCKS};
    watched w = {.count = 0};
    pthread_mutex_init(&w.mutex, NULL);
    const bel_batch_watch watch = {.note = note, .context = &w};
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_ASSERT_OK(bel_prefetch_start(input, next_backwards, &order, 1, &watch, 1, &prefetch));
    for (int64_t i = 0; i < BLOCKS; i++) {
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        for (int f = 0; f < batch->field_count; f++)
            assert_true(is_noted(&w, &batch->fields[f]));
    }
    bel_prefetch_stop(prefetch);
    assert_true(w.came > 0);
    assert_int_equal(w.count, 0);
    pthread_mutex_destroy(&w.mutex);
    bel_input_destroy(input);
    gate_deinit(&it);
}

static bel_status *pass(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)record, (void)out_skip;
    return NULL;
}

// Uses all threads that the reader offers. It uses fewer if maps would run on them, if each would
// repeat a sliding shuffle, or if the dataset sets a number.
static void test_threads(void **state)
{
    (void)state;
    enum { OFFERED = 3 };
    static const struct {
        bool maps, slides;
        int depth, asked, made; // 0: not set
    } rows[] = {{.made = OFFERED},
                {.maps = true, .made = 1},
                {.slides = true, .made = 1},
                {.depth = 4, .asked = BEL_PREFETCH_AUTO, .made = OFFERED},
                {.depth = 2, .asked = BEL_PREFETCH_AUTO, .made = 2},
                {.depth = 4, .asked = 2, .made = 2},
                {.maps = true, .depth = 4, .asked = 2, .made = 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ids[RECORDS];
        bel_dataset *dataset = numbered(ids, RECORDS);
        if (rows[i].slides) bel_dataset_shuffle_sliding(dataset, 1, 7);
        if (rows[i].maps) bel_dataset_map(dataset, pass, NULL, NULL);
        bel_dataset_batch(dataset, BATCH);
        if (rows[i].asked != 0) bel_dataset_prefetch(dataset, rows[i].depth, rows[i].asked);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        backwards order = {.blocks = BLOCKS};
        bel_prefetch *prefetch;
        const bel_batch *batch;
        BEL_ASSERT_OK(
            bel_prefetch_start(input, next_backwards, &order, 1, NULL, OFFERED, &prefetch));
        assert_int_equal(bel_prefetch_threads(prefetch), rows[i].made);
        for (int64_t b = 0; b < BLOCKS; b++) {
            BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
            assert_block(input, batch, BLOCKS - 1 - b);
        }
        bel_prefetch_stop(prefetch);
        bel_input_destroy(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivers_in_order),
        cmocka_unit_test(test_looks_ahead),
        cmocka_unit_test(test_errors_come_at_their_place),
        cmocka_unit_test(test_maps_run_on_all_threads),
        cmocka_unit_test(test_stops_in_the_middle),
        cmocka_unit_test(test_stops_inside_of_maps),
        cmocka_unit_test(test_an_empty_order_ends_at_once),
        cmocka_unit_test(test_any_order_and_the_batch_in_hand),
        cmocka_unit_test(test_automatic_depth),
        cmocka_unit_test(test_memory_is_noted),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
