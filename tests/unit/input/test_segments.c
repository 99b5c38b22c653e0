// Segments: the counted steps read each record of each epoch once, in the order of the stream. This
// holds for any changes of the number of replicas, and returns to checkpoints between them.
#include "base/input_segment.h"
#include "base/rng.h"
#include "unit/input/test_fixture.h"

enum { RECORDS = 60, BATCH = 4, EPOCHS = 5, BLOCKS = RECORDS * EPOCHS / BATCH, MOST_REPLICAS = 4 };
enum { CHANGES = 6, RUNS = 20 };

typedef struct history { // only counted steps
    int64_t blocks[BLOCKS];
    int64_t first_of[BLOCKS + 1]; // number of blocks used before each step
    int64_t steps;
} history;

static uint32_t draw(uint32_t run, int number, uint32_t below)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{7, run}}, (uint64_t)number, 0, words);
    return words[0] % below;
}

// Runs steps of a segment while all replicas have a block, at most `most`.
static void run_steps(history *h, const bel_input_segment *segment, int64_t most)
{
    for (; most > 0; most--) {
        int64_t step = h->steps, used = h->first_of[step];
        if (bel_input_segment_block(segment, step, segment->replica_count - 1) >= BLOCKS) return;
        for (int64_t r = 0; r < segment->replica_count; r++)
            h->blocks[used++] = bel_input_segment_block(segment, step, r);
        h->first_of[++h->steps] = used;
    }
}

// Reads the blocks in order and counts records by epoch.
static void check_records(const bel_input *input, const history *h)
{
    int seen[EPOCHS][RECORDS] = {{0}};
    int64_t used = h->first_of[h->steps], ids[BATCH];
    bel_batch *batch = bel_batch_create(input);
    for (int64_t i = 0; i < used; i++) {
        assert_int_equal(read_ids(input, batch, h->blocks[i], ids), BATCH);
        for (int k = 0; k < BATCH; k++)
            seen[i * BATCH / RECORDS][ids[k]]++;
    }
    bel_batch_destroy(batch);
    for (int64_t epoch = 0; epoch < used * BATCH / RECORDS; epoch++)
        for (int id = 0; id < RECORDS; id++)
            assert_int_equal(seen[epoch][id], 1);
}

static void test_each_record_once(void **state)
{
    (void)state;
    int64_t numbers[RECORDS];
    bel_dataset *dataset = numbered(numbers, RECORDS);
    bel_dataset_shuffle(dataset, 0, 3);
    bel_dataset_repeat(dataset, EPOCHS);
    bel_dataset_batch(dataset, BATCH);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    for (uint32_t run = 0; run < RUNS; run++) {
        history h = {.steps = 0};
        bel_input_segment segment = {.replica_count = 1 + draw(run, 0, MOST_REPLICAS)};
        for (int change = 1; change <= CHANGES; change++) {
            run_steps(&h, &segment, draw(run, change, 12));
            int64_t back = draw(run, 100 + change, 4); // to a checkpoint of this segment
            int64_t oldest = segment.first_step;
            h.steps = h.steps - back > oldest ? h.steps - back : oldest;
            segment = bel_input_segment_next(&segment, h.steps,
                                             1 + draw(run, 200 + change, MOST_REPLICAS));
        }
        run_steps(&h, &segment, BLOCKS);
        int64_t left = BLOCKS - h.first_of[h.steps];
        assert_true(left >= 0 && left < segment.replica_count);
        check_records(input, &h);
    }
    bel_input_destroy(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_record_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
