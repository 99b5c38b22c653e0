// Training frames: golden bytes of one kind, every kind both ways with values at the limits of
// their types, and their words in messages.
#include "ps/frames/frames.h"

#include <string.h>

#include "support/bel_test.h"

static void fields_are_packed_in_order(void **state)
{
    (void)state;
    const bel_report_frame report = {.version = 0x1122334455667788,
                                     .decision = 2,
                                     .chunk = 9,
                                     .node = -1,
                                     .replicas = 3,
                                     .examples = 0x0102};
    static const uint8_t golden[BEL_FRAME_FIELD_BYTES] = {
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // version
        2,    0,    0,    0,    9,    0,    0,    0,    // decision, chunk
        0xff, 0xff, 0xff, 0xff, 3,    0,    0,    0,    // node, replicas
        2,    1,    0,    0,    0,    0,    0,    0};   // examples
    bel_frame frame = bel_report_frame_write(report, golden, 7);
    assert_int_equal(frame.kind, BEL_FRAME_REPORT);
    assert_memory_equal(frame.fields, golden, sizeof golden);
    assert_ptr_equal(frame.payload, golden);
    assert_int_equal(frame.payload_bytes, 7);
}

// Fills with bytes that count up and include both limits of each type, so that no two fields are
// equal.
static void fill(void *fields, size_t bytes, int round)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)fields)[i] = (uint8_t)(round == 0 ? i + 1 : round == 1 ? 0xff : 0x80 + i);
}

static void every_kind_comes_back(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
#define SAME(type, name, meaning) assert_true(got.name == said.name);
#define CHECK(NAME, name, number, way, what, carries)                                              \
    {                                                                                              \
        bel_##name##_frame said;                                                                   \
        fill(&said, sizeof said, round);                                                           \
        bel_frame frame = bel_##name##_frame_write(said, NULL, 0);                                 \
        bel_##name##_frame got = bel_##name##_frame_read(&frame);                                  \
        BEL_FIELDS_##name(SAME) assert_int_equal(frame.kind, BEL_FRAME_##NAME);                    \
        assert_string_equal(bel_frame_kind_name(frame.kind), #name);                               \
        assert_true(frame.kind <= BEL_FRAME_LAST_KIND);                                            \
    }
        BEL_FRAME_KINDS(CHECK)
    }
}

static void frames_are_said_in_words(void **state)
{
    (void)state;
    char words[BEL_FRAME_WORDS_BYTES];
    bel_frame frame =
        bel_params_frame_write((bel_params_frame){.version = -1, .chunk = 7}, NULL, 40);
    bel_frame_words(&frame, words);
    assert_string_equal(words, "params, version -1, chunk 7, bytes 40");
    frame = (bel_frame){.kind = 99};
    bel_frame_words(&frame, words);
    assert_string_equal(words, "unknown, kind 99, bytes 0");
    bel_row_report_frame longest; // fits with the largest numbers
    fill(&longest, sizeof longest, 2);
    frame = bel_row_report_frame_write(longest, NULL, SIZE_MAX / 2);
    bel_frame_words(&frame, words);
    assert_non_null(strstr(words, ", bytes 9223372036854775807"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_packed_in_order),
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(frames_are_said_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
