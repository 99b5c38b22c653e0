// The list returns the appended offsets, whether they fit groups or not.
#include "input/files/offset_list.h"

#include "unit/input/test_fixture.h"

// Pseudo-random offsets with gaps of at most `most`.
static int64_t *make_offsets(size_t count, uint64_t most, int64_t first)
{
    int64_t *offsets = bel_xcalloc(count + 1, sizeof *offsets), at = first;
    uint64_t noise = 7;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = at;
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        at += (int64_t)((noise >> 33) % (most + 1));
    }
    return offsets;
}

static void assert_list(const bel_offset_list *list, const int64_t *offsets, size_t count)
{
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bel_offset_list_at(list, i), offsets[i]);
    for (size_t i = 0; i < count; i++) {
        size_t found = bel_offset_list_last_at_most(list, offsets[i]);
        assert_true(offsets[found] <= offsets[i]);
        assert_true(found + 1 == count || offsets[found + 1] > offsets[i]);
    }
}

static void test_offsets_come_back(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        uint64_t most;
        bool grouped;
    } cases[] = {
        {1, 0, true},       {28, 60, true},      {29, 60, true},          {5000, 60, true},
        {5000, 2000, true}, {5000, 5000, false}, {5000, 1u << 20, false}, {100000, 3, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t piece = 1; piece <= 1000; piece *= 10) {
            int64_t *offsets = make_offsets(cases[c].count, cases[c].most, INT64_C(5) << 32);
            bel_offset_list list = {0};
            if (piece == 100) BEL_ASSERT_OK(bel_offset_list_reserve(&list, cases[c].count));
            for (size_t at = 0; at < cases[c].count; at += piece) {
                size_t left = cases[c].count - at;
                BEL_ASSERT_OK(
                    bel_offset_list_append(&list, offsets + at, left < piece ? left : piece));
            }
            assert_true((list.wide == NULL) == cases[c].grouped);
            assert_list(&list, offsets, cases[c].count);
            bel_offset_list_deinit(&list);
            bel_free(offsets);
        }
    }
}

// One long record in the middle of a group makes the list wide; it keeps the offsets around it.
static void test_one_gap_is_enough(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    for (size_t gap = 1; gap < 60; gap++) {
        int64_t *offsets = make_offsets(COUNT, 10, 3);
        for (size_t i = gap; i < COUNT; i++)
            offsets[i] += UINT16_MAX + 1;
        bel_offset_list list = {0};
        BEL_ASSERT_OK(bel_offset_list_append(&list, offsets, COUNT));
        assert_true((list.wide == NULL) == (gap % BEL_OFFSETS_A_GROUP == 0));
        assert_list(&list, offsets, COUNT);
        bel_offset_list_deinit(&list);
        bel_free(offsets);
    }
}

// The list continues after its first offsets were dropped and all were made smaller.
static void test_dropped_offsets(void **state)
{
    (void)state;
    enum { COUNT = 3000, LATER = 5000, DROPPED = 50 * BEL_OFFSETS_A_GROUP };
    for (int round = 0; round < 4; round++) {
        const size_t gone = round % 2 == 0 ? DROPPED : COUNT;
        int64_t *offsets = make_offsets(LATER, round < 2 ? 60 : 5000, INT64_C(5) << 32);
        bel_offset_list list = {0};
        BEL_ASSERT_OK(bel_offset_list_append(&list, offsets, COUNT));
        bel_offset_list_drop(&list, gone);
        bel_offset_list_shift(&list, offsets[0]);
        for (size_t i = LATER; i-- > 0;)
            offsets[i] -= offsets[0];
        assert_list(&list, offsets + gone, COUNT - gone);
        BEL_ASSERT_OK(bel_offset_list_append(&list, offsets + COUNT, LATER - COUNT));
        assert_list(&list, offsets + gone, LATER - gone);
        bel_offset_list_deinit(&list);
        bel_free(offsets);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets_come_back),
        cmocka_unit_test(test_dropped_offsets),
        cmocka_unit_test(test_one_gap_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
