// Frame headers: golden bytes, every field both ways, and bytes that are not a header.
#include "support/bel_test.h"
#include "wire/frame.h"

static const bel_wire_frame sample = {.kind = 3,
                                      .generation = 0x01020304,
                                      .incarnation = 7,
                                      .sender = -2,
                                      .payload_bytes = 65536,
                                      .sequence = 5,
                                      .taken = 4,
                                      .fields = {1, 2, 3, [31] = 255}};

static void test_golden(void **state)
{
    (void)state;
    static const uint8_t golden[BEL_WIRE_FRAME_BYTES] = {
        'B',  'E',  'L',  '2',  3, 0, 0, 0, 4, 3, 2, 1, 7, 0, 0, 0, // magic, kind, generation, …
        0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, // sender, payload bytes
        5,    0,    0,    0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, // sequence, taken
        1,    2,    3,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // fields
        0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff};
    uint8_t bytes[BEL_WIRE_FRAME_BYTES];
    bel_wire_frame_write(&sample, bytes);
    assert_memory_equal(bytes, golden, sizeof golden);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint8_t bytes[BEL_WIRE_FRAME_BYTES];
    bel_wire_frame_write(&sample, bytes);
    bel_wire_frame got;
    assert_true(bel_wire_frame_read(bytes, &got));
    assert_int_equal(got.kind, sample.kind);
    assert_int_equal(got.generation, sample.generation);
    assert_int_equal(got.incarnation, sample.incarnation);
    assert_int_equal(got.sender, sample.sender);
    assert_int_equal(got.payload_bytes, sample.payload_bytes);
    assert_int_equal(got.sequence, sample.sequence);
    assert_int_equal(got.taken, sample.taken);
    assert_memory_equal(got.fields, sample.fields, sizeof got.fields);
}

static void test_refused(void **state)
{
    (void)state;
    uint8_t bytes[BEL_WIRE_FRAME_BYTES];
    bel_wire_frame got;
    for (int i = 0; i < 24; i++) {
        bool said = i == 4 || (i >= 8 && i < 20); // kind, generation, incarnation, sender
        if (said) continue;                       // other code checks them
        bel_wire_frame_write(&sample, bytes);
        bytes[i] ^= 0x40;
        assert_false(bel_wire_frame_read(bytes, &got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden),
                                       cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
