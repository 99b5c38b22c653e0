// Control messages: packing, unpacking, and bytes that are not a message. protobuf covers single
// fields; these tests cover the additions of src/wire: lengths, kinds, bounds.
#include "base/alloc.h"
#include "base/rng.h"
#include "support/bel_test.h"
#include "support/message.h"

static Bel__Message *there_and_back(uint32_t generation, const ProtobufCMessage *kind)
{
    size_t count;
    uint8_t *bytes = bel_message_write(generation, kind, &count);
    size_t length = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
    assert_int_equal(length, count - 4);
    Bel__Message *got;
    BEL_ASSERT_OK(bel_message_read(bytes + 4, length, &got));
    bel_free(bytes);
    return got;
}

// Strings, lists, parts and bytes of a message are unpacked as packed.
static void test_there_and_back(void **state)
{
    (void)state;
    static char folder[] = "/m", name[] = "dense/kernel", address[] = "a:1";
    char *shards[] = {address, folder};
    int32_t replicas[] = {2, -1};
    int64_t dims[] = {4, INT64_MAX};
    Bel__Variable variable, *variables[] = {&variable, &variable};
    bel__variable__init(&variable);
    variable.name = name;
    variable.dims = dims;
    variable.n_dims = 2;
    Bel__Schedule schedule;
    bel__schedule__init(&schedule);
    schedule.save_secs = 0.1;
    Bel__Message *got =
        there_and_back(7, BEL_TEST_KIND(Setup, setup, .checkpoint = folder, .step = -6,
                                        .shards = shards, .n_shards = 2, .replicas = replicas,
                                        .n_replicas = 2, .variables = variables, .n_variables = 2,
                                        .schedule = &schedule, .seed = UINT64_C(1) << 63));
    assert_int_equal(got->generation, 7);
    assert_int_equal(got->kind_case, BEL__MESSAGE__KIND_SETUP);
    assert_string_equal(bel_message_kind_name(got), "setup");
    const Bel__Setup *setup = got->setup;
    assert_string_equal(setup->checkpoint, folder);
    assert_int_equal(setup->step, -6);
    assert_int_equal(setup->n_shards, 2);
    assert_string_equal(setup->shards[1], folder);
    assert_memory_equal(setup->replicas, replicas, sizeof replicas);
    assert_int_equal(setup->n_variables, 2);
    assert_string_equal(setup->variables[1]->name, name);
    assert_memory_equal(setup->variables[1]->dims, dims, sizeof dims);
    assert_true(setup->schedule->save_secs == 0.1 && setup->segment == NULL);
    assert_true(setup->seed == UINT64_C(1) << 63);
    bel_message_destroy(got);
    uint8_t data[] = {0, 255, 7};
    got = there_and_back(1, BEL_TEST_KIND(Saved, saved, .part = {.data = data, .len = 3}));
    assert_int_equal(got->saved->part.len, 3);
    assert_memory_equal(got->saved->part.data, data, 3);
    assert_string_equal(got->saved->why, ""); // never NULL
    bel_message_destroy(got);
}

// For every kind, the kind follows from the struct.
static void test_every_kind(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *all = &bel__message__descriptor;
    int kinds = 0;
    for (unsigned i = 0; i < all->n_fields; i++) {
        if (all->fields[i].type != PROTOBUF_C_TYPE_MESSAGE) continue;
        const ProtobufCMessageDescriptor *descriptor = all->fields[i].descriptor;
        ProtobufCMessage *kind = bel_xcalloc(1, descriptor->sizeof_message);
        descriptor->message_init(kind);
        Bel__Message *got = there_and_back(0, kind);
        assert_int_equal(got->kind_case, all->fields[i].id);
        assert_string_equal(bel_message_kind_name(got), all->fields[i].name);
        bel_message_destroy(got);
        bel_free(kind);
        kinds++;
    }
    assert_int_equal(kinds, 27);
}

// Every cut and many flips give an error or a message, never a crash.
static void test_damaged(void **state)
{
    (void)state;
    static char name[] = "seed", value[] = "1";
    Bel__Setting setting, *settings[] = {&setting, &setting};
    bel__setting__init(&setting);
    setting.name = name;
    setting.value = value;
    size_t count;
    uint8_t *bytes = bel_message_write(3,
                                       BEL_TEST_KIND(Join, join, .host = name, .token = value,
                                                     .settings = settings, .n_settings = 2),
                                       &count);
    Bel__Message *got;
    int refused = 0;
    for (size_t cut = 0; cut < count - 4; cut++) {
        bel_status *status = bel_message_read(bytes + 4, cut, &got);
        if (status == NULL) bel_message_destroy(got);
        refused += status != NULL;
        bel_status_destroy(status);
    }
    assert_true(refused > 0);
    for (uint64_t i = 0; i < 5000; i++) {
        uint32_t words[4];
        bel_rng_block((bel_rng_key){{5, 6}}, 0, i, words);
        uint8_t *byte = &bytes[4 + words[0] % (count - 4)], was = *byte;
        *byte ^= (uint8_t)(1 + words[1] % 255);
        bel_status *status = bel_message_read(bytes + 4, count - 4, &got);
        if (status == NULL) bel_message_destroy(got);
        bel_status_destroy(status);
        *byte = was;
    }
    bel_free(bytes);
    static const uint8_t no_kind[] = {0x08, 5}, unknown[] = {0x08, 5, 0xfa, 0x01, 0};
    BEL_ASSERT_FAILS(bel_message_read(no_kind, sizeof no_kind, &got), BEL_INVALID_ARGUMENT,
                     "of no kind that is known");
    BEL_ASSERT_FAILS(bel_message_read(unknown, sizeof unknown, &got), BEL_INVALID_ARGUMENT,
                     "of no kind that is known");
}

// Settings of two bytes each: a message of megabytes must not take gigabytes. Field 12 of a join,
// which is field 3 of a message, holds the settings.
static void test_too_many_parts(void **state)
{
    (void)state;
    enum { PARTS = 4 << 20, FEW = 1000, JOIN = 3 << 3 | 2, SETTING = 12 << 3 | 2, HEAD = 6 };
    size_t size = HEAD + 2 * (size_t)PARTS;
    uint8_t *bytes = bel_xcalloc(size, 1); // each a tag and a length of 0
    for (size_t i = HEAD; i < size; i += 2)
        bytes[i] = SETTING;
    Bel__Message *got;
    for (int many = 0; many < 2; many++) {
        size_t parts = many ? PARTS : FEW, inner = 2 * parts;
        bytes[0] = JOIN; // the length follows, in five bytes of seven bits
        for (int i = 0; i < 5; i++)
            bytes[1 + i] = (uint8_t)((inner >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
        if (many) {
            BEL_ASSERT_FAILS(bel_message_read(bytes, size, &got), BEL_INVALID_ARGUMENT,
                             "8388614 bytes is too large once read");
            continue;
        }
        BEL_ASSERT_OK(bel_message_read(bytes, HEAD + inner, &got));
        assert_int_equal(got->join->n_settings, FEW);
        bel_message_destroy(got);
    }
    bel_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_too_many_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
