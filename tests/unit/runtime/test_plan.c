// Memory plan: valid for random lifetimes, never below the lower bound, and near it on a chain.
#include "base/alloc.h"
#include "base/rng.h"
#include "runtime/plan.h"
#include "support/bel_test.h"

enum { MAX_BUFFERS = 60, INSTRUCTIONS = 80 };

static uint32_t random_number(uint64_t high, uint64_t low)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{21, 22}}, high, low, words);
    return words[0];
}

static size_t rounded(size_t size)
{
    return (size + 63) / 64 * 64;
}

// Lower bound for any plan: the most bytes alive at one instruction.
static size_t lower_bound(const bel_plan_buffer *buffers, int count)
{
    size_t most = 0;
    for (int at = 0; at < INSTRUCTIONS; at++) {
        size_t alive = 0;
        for (int b = 0; b < count; b++)
            if (buffers[b].first <= at && at <= buffers[b].last) {
                alive += rounded(buffers[b].size_bytes);
            }
        if (alive > most) most = alive;
    }
    return most;
}

// Independent of bel_plan_is_valid: marks the 64-byte lines in use at each instruction.
static void check_no_overlap(const bel_plan_buffer *buffers, int count, size_t total)
{
    static unsigned char taken[1 << 16];
    assert_true(total / 64 <= sizeof taken);
    for (int at = 0; at < INSTRUCTIONS; at++) {
        memset(taken, 0, total / 64);
        for (int b = 0; b < count; b++) {
            const bel_plan_buffer *buffer = &buffers[b];
            assert_int_equal(buffer->offset % 64, 0);
            assert_true(buffer->offset + buffer->size_bytes <= total);
            if (buffer->first > at || at > buffer->last) continue;
            size_t end = buffer->offset + rounded(buffer->size_bytes);
            for (size_t line = buffer->offset / 64; line < end / 64; line++)
                assert_int_equal(taken[line]++, 0);
        }
    }
}

static void test_random_lifetimes(void **state)
{
    (void)state;
    for (uint64_t list = 0; list < 40; list++) {
        bel_plan_buffer buffers[MAX_BUFFERS];
        int count = (int)(random_number(list, 0) % (MAX_BUFFERS + 1));
        size_t sum = 0;
        for (int b = 0; b < count; b++) {
            uint64_t at = 10 * (uint64_t)b;
            int first = (int)(random_number(list, at + 1) % INSTRUCTIONS);
            int length = (int)(random_number(list, at + 2) % 12);
            buffers[b] = (bel_plan_buffer){
                .size_bytes = random_number(list, at + 3) % 5000,
                .first = first,
                .last = first + length < INSTRUCTIONS ? first + length : INSTRUCTIONS - 1};
            sum += rounded(buffers[b].size_bytes);
        }
        size_t total = bel_plan_buffers(buffers, count, NULL, false);
        assert_true(bel_plan_is_valid(buffers, count, NULL));
        check_no_overlap(buffers, count, total);
        size_t bound = lower_bound(buffers, count);
        assert_true(total >= bound && total <= 2 * bound);
        assert_int_equal(bel_plan_buffers(buffers, count, NULL, true), sum); // no sharing
        check_no_overlap(buffers, count, sum);
    }
}

// The plan's rule written plainly: by size, each buffer at the lowest offset (0 or the end of
// another) where it overlaps none.
static size_t plain_offset(const bel_plan_buffer *buffers, const bool *placed, int count,
                           const bool *together, int b)
{
    size_t best = SIZE_MAX, size = rounded(buffers[b].size_bytes);
    for (int after = -1; after < count; after++) {
        if (after >= 0 && !placed[after]) continue;
        size_t at = after < 0 ? 0 : buffers[after].offset + rounded(buffers[after].size_bytes);
        bool free = at < best;
        for (int i = 0; free && i < count; i++) {
            const bel_plan_buffer *other = &buffers[i];
            bool meets = together != NULL
                             ? together[b * count + i]
                             : buffers[b].first <= other->last && other->first <= buffers[b].last;
            free = !placed[i] || !meets || at >= other->offset + rounded(other->size_bytes) ||
                   other->offset >= at + size;
        }
        if (free) best = at;
    }
    return best;
}

static bool in_matrix(const void *together, int a, int b)
{
    return ((const bool *)together)[a * MAX_BUFFERS + b];
}

static void test_lowest_offsets(void **state)
{
    (void)state;
    for (uint64_t list = 0; list < 60; list++) {
        bel_plan_buffer buffers[MAX_BUFFERS], plain[MAX_BUFFERS];
        bool together[MAX_BUFFERS * MAX_BUFFERS], placed[MAX_BUFFERS] = {false};
        for (int b = 0; b < MAX_BUFFERS; b++) {
            uint64_t at = 10 * (uint64_t)b;
            int first = (int)(random_number(100 + list, at) % INSTRUCTIONS);
            int length = (int)(random_number(100 + list, at + 1) % 30);
            // All sizes differ, so that the order is unique.
            size_t size = 97 * (random_number(100 + list, at + 2) % 90) + (size_t)b;
            buffers[b] =
                (bel_plan_buffer){.size_bytes = size, .first = first, .last = first + length};
            for (int i = 0; i <= b; i++)
                together[b * MAX_BUFFERS + i] = together[i * MAX_BUFFERS + b] =
                    random_number(200 + list, (uint64_t)(b * MAX_BUFFERS + i)) % 4 == 0;
        }
        const bool *matrix = list % 2 == 1 ? together : NULL;
        memcpy(plain, buffers, sizeof plain);
        const bel_plan_relation relation = {in_matrix, matrix};
        const bel_plan_relation *used = matrix != NULL ? &relation : NULL;
        (void)bel_plan_buffers(buffers, MAX_BUFFERS, used, false);
        assert_true(bel_plan_is_valid(buffers, MAX_BUFFERS, used));
        for (int round = 0; round < MAX_BUFFERS; round++) {
            int next = -1;
            for (int b = 0; b < MAX_BUFFERS; b++)
                if (!placed[b] && (next < 0 || plain[b].size_bytes > plain[next].size_bytes))
                    next = b;
            plain[next].offset = plain_offset(plain, placed, MAX_BUFFERS, matrix, next);
            placed[next] = true;
            assert_int_equal(buffers[next].offset, plain[next].offset);
        }
    }
}

// A forward and backward pass: buffer i is written at i and read again at the mirrored instruction.
static void test_chain(void **state)
{
    (void)state;
    enum { DEPTH = 30 };
    bel_plan_buffer buffers[2 * DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        size_t size = 64 * (1 + random_number(99, (uint64_t)i) % 200);
        buffers[i] = (bel_plan_buffer){.size_bytes = size, .first = i, .last = 2 * DEPTH - 1 - i};
        buffers[DEPTH + i] = (bel_plan_buffer){
            .size_bytes = size, .first = 2 * DEPTH - 1 - i, .last = 2 * DEPTH - i};
    }
    size_t total = bel_plan_buffers(buffers, 2 * DEPTH, NULL, false);
    check_no_overlap(buffers, 2 * DEPTH, total);
    assert_true((double)total <= 1.3 * (double)lower_bound(buffers, 2 * DEPTH));
    for (int i = 0; i < 2 * DEPTH; i++) // each is read once, by the next: two suffice
        buffers[i] = (bel_plan_buffer){.size_bytes = 640, .first = i, .last = i + 1};
    assert_int_equal(bel_plan_buffers(buffers, 2 * DEPTH, NULL, false), 2 * 640);
}

// A forward and backward pass of too many layers to compare all pairs of buffers. At the end of the
// forward pass all its values are alive. Backward values reuse the memory of values already read.
// Then two buffers in the middle overlap.
static void test_many(void **state)
{
    (void)state;
    enum { DEPTH = 150000 };
    bel_plan_buffer *buffers = bel_xcalloc(2 * (size_t)DEPTH, sizeof *buffers);
    for (int i = 0; i < DEPTH; i++) {
        buffers[i] = (bel_plan_buffer){.size_bytes = 256, .first = i, .last = 2 * DEPTH - 1 - i};
        buffers[DEPTH + i] =
            (bel_plan_buffer){.size_bytes = 256, .first = 2 * DEPTH - 1 - i, .last = 2 * DEPTH - i};
    }
    size_t total = bel_plan_buffers(buffers, 2 * DEPTH, NULL, false);
    assert_true(total == 256 * ((size_t)DEPTH + 1)); // the first gradient finds no free place
    assert_true(bel_plan_is_valid(buffers, 2 * DEPTH, NULL));
    buffers[DEPTH / 2].offset = buffers[DEPTH / 2 + 1].offset;
    assert_false(bel_plan_is_valid(buffers, 2 * DEPTH, NULL));
    bel_free(buffers);
}

static void test_invalid(void **state)
{
    (void)state;
    bel_plan_buffer buffers[] = {{.size_bytes = 100, .first = 0, .last = 2},
                                 {.size_bytes = 10, .first = 2, .last = 3, .offset = 64}};
    assert_false(bel_plan_is_valid(buffers, 2, NULL));
    buffers[1].offset = 128;
    assert_true(bel_plan_is_valid(buffers, 2, NULL));
    buffers[1].offset = 64;
    buffers[1].first = 3;
    assert_true(bel_plan_is_valid(buffers, 2, NULL));
    assert_int_equal(bel_plan_buffers(NULL, 0, NULL, false), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes),
        cmocka_unit_test(test_lowest_offsets),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
