// Event files: golden bytes, and a small reader that checks every checksum and message.
#include <math.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "report/event_file.h"
#include "support/bel_test.h"

// --- A small reader -----------------------------------------------------------------------------

typedef struct event {
    double wall_time;
    int64_t step;
    int session_status; // 0: no session log
    char version[32];
    char tag[64];
    float value;
} event;

typedef struct span {
    const unsigned char *at, *end;
} span;

static uint64_t take_fixed(span *from, size_t size)
{
    uint64_t value = 0;
    assert_true((size_t)(from->end - from->at) >= size);
    memcpy(&value, from->at, size);
    from->at += size;
    return value;
}

static uint64_t take_varint(span *from)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        uint64_t byte = take_fixed(from, 1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail_msg("a varint of more than 10 bytes");
    return 0;
}

static span take_bytes(span *from)
{
    uint64_t length = take_varint(from);
    assert_true(length <= (uint64_t)(from->end - from->at));
    span taken = {from->at, from->at + length};
    from->at += length;
    return taken;
}

static void copy_text(char *out, size_t size, span text)
{
    size_t length = (size_t)(text.end - text.at);
    assert_true(length < size);
    memcpy(out, text.at, length);
    out[length] = '\0';
}

static void read_summary(span summary, event *out)
{
    assert_int_equal(take_varint(&summary), 1 << 3 | 2);
    span value = take_bytes(&summary);
    assert_ptr_equal(summary.at, summary.end);
    assert_int_equal(take_varint(&value), 1 << 3 | 2);
    copy_text(out->tag, sizeof out->tag, take_bytes(&value));
    assert_int_equal(take_varint(&value), 2 << 3 | 5);
    uint32_t bits = (uint32_t)take_fixed(&value, 4);
    memcpy(&out->value, &bits, 4);
    assert_ptr_equal(value.at, value.end);
}

static event read_event(span data)
{
    event read = {0};
    while (data.at < data.end) {
        uint64_t key = take_varint(&data);
        if (key == (1 << 3 | 1)) {
            uint64_t bits = take_fixed(&data, 8);
            memcpy(&read.wall_time, &bits, 8);
        } else if (key == (2 << 3 | 0)) {
            read.step = (int64_t)take_varint(&data);
        } else if (key == (3 << 3 | 2)) {
            copy_text(read.version, sizeof read.version, take_bytes(&data));
        } else if (key == (5 << 3 | 2)) {
            read_summary(take_bytes(&data), &read);
        } else if (key == (7 << 3 | 2)) {
            span log = take_bytes(&data);
            assert_int_equal(take_varint(&log), 1 << 3 | 0);
            read.session_status = (int)take_varint(&log);
        } else {
            fail_msg("an unknown field with key %llu", (unsigned long long)key);
        }
    }
    return read;
}

static uint32_t masked(const void *data, size_t size)
{
    uint32_t crc = bel_crc32c(0, data, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Reads at most `room` events of a file and checks all checksums.
static int read_events(const char *path, event *out_events, int room)
{
    char *data;
    size_t size;
    int count = 0;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    span file = {(unsigned char *)data, (unsigned char *)data + size};
    while (file.at < file.end) {
        assert_true(count < room);
        const unsigned char *head = file.at;
        uint64_t length = take_fixed(&file, 8);
        assert_int_equal(take_fixed(&file, 4), masked(head, 8));
        assert_true(length <= (uint64_t)(file.end - file.at));
        span body = {file.at, file.at + length};
        file.at += length;
        assert_int_equal(take_fixed(&file, 4), masked(body.at, length));
        out_events[count++] = read_event(body);
    }
    bel_free(data);
    return count;
}

// --- Tests --------------------------------------------------------------------------------------

// The version record and a scalar as TensorFlow writes them.
static void test_golden_bytes(void **state)
{
    (void)state;
    static const char version[] = "\x1a\0\0\0\0\0\0\0\x12\x9b\xd8\x2d"
                                  "\x09\0\0\x60\x2e\x40\xc0\xda\x41\x10\0\x1a\x0d"
                                  "brain.Event:2"
                                  "\x23\x1d\xb0\x96";
    static const char scalar[] = "\x10\x01\x2a\x0d\x0a\x0b\x0a\x04"
                                 "loss"
                                 "\x15\x00\x00\x10\x40";
    double wall_time;
    memcpy(&wall_time, version + 13, sizeof wall_time);
    bel_event_file *file;
    char *data;
    size_t size;
    BEL_ASSERT_OK(bel_event_file_open_at(bel_test_own_folder(), wall_time, &file));
    char *path = bel_xstrdup(bel_event_file_path(file));
    BEL_ASSERT_OK(bel_file_read(path, &data, &size)); // flushed when opened
    assert_int_equal(size, 42);
    assert_memory_equal(data, version, 42);
    bel_free(data);
    bel_event_file_scalar(file, wall_time, 1, "loss", 2.25f);
    BEL_ASSERT_OK(bel_event_file_close(file));
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    assert_int_equal(size, 42 + 12 + 26 + 4);
    assert_memory_equal(data, version, 42);
    assert_int_equal(data[42], 26);
    assert_memory_equal(data + 42 + 12, version + 12, 9); // the wall time again
    assert_memory_equal(data + 42 + 12 + 9, scalar, sizeof scalar - 1);
    bel_free(data);
    bel_free(path);
}

static void test_events_read_back(void **state)
{
    (void)state;
    event got[8];
    bel_event_file *file;
    BEL_ASSERT_OK(bel_event_file_open(bel_test_own_folder(), &file));
    bel_event_file_session_start(file, 128);
    bel_event_file_scalar(file, 1e9, 129, "loss", 0.5f);
    bel_event_file_scalar(file, 1e9 + 0.25, INT64_MAX, "accuracy/größe", -0.0f);
    bel_event_file_scalar(file, 0, -1, "", NAN);
    BEL_ASSERT_OK(bel_event_file_flush(file));
    assert_int_equal(read_events(bel_event_file_path(file), got, 8), 5);
    assert_string_equal(got[0].version, "brain.Event:2");
    assert_true(got[0].wall_time > 1e9);
    assert_int_equal(got[1].session_status, 1);
    assert_int_equal(got[1].step, 128);
    assert_string_equal(got[2].tag, "loss");
    assert_true(got[2].wall_time == 1e9 && got[2].value == 0.5f && got[2].step == 129);
    assert_string_equal(got[3].tag, "accuracy/größe");
    assert_true(got[3].wall_time == 1e9 + 0.25 && got[3].step == INT64_MAX);
    assert_true(got[3].value == 0 && signbit(got[3].value));
    assert_true(got[4].step == -1 && isnan(got[4].value));
    BEL_ASSERT_OK(bel_event_file_close(file));
}

static void test_many_events_are_all_there(void **state)
{
    (void)state;
    enum { COUNT = 5000 }; // larger than one buffer
    bel_event_file *file;
    BEL_ASSERT_OK(bel_event_file_open(bel_test_own_folder(), &file));
    char *path = bel_xstrdup(bel_event_file_path(file));
    for (int i = 0; i < COUNT; i++)
        bel_event_file_scalar(file, i, i, "loss", (float)i);
    BEL_ASSERT_OK(bel_event_file_close(file));
    event *got = bel_xcalloc(COUNT + 1, sizeof *got);
    assert_int_equal(read_events(path, got, COUNT + 1), COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        assert_true(got[i + 1].step == i && got[i + 1].value == (float)i);
    bel_free(got);
    bel_free(path);
}

// Names sort in order within one second, beyond ten names, and when the clock goes back.
static void test_names_sort_by_order(void **state)
{
    (void)state;
    static const double times[] = {1234567890.75,
                                   1234567890.75,
                                   1234567890,
                                   1234560000,
                                   1234567891,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1234567895};
    enum { COUNT = sizeof times / sizeof *times };
    char *dir = bel_path_join(bel_test_own_folder(), "eval/deep"); // its parents do not exist
    char *before = bel_xstrdup("");
    for (int i = 0; i < COUNT; i++) {
        bel_event_file *file;
        BEL_ASSERT_OK(bel_event_file_open_at(dir, times[i], &file));
        char *path = bel_xstrdup(bel_event_file_path(file));
        BEL_ASSERT_OK(bel_event_file_close(file));
        assert_true(strcmp(before, path) < 0);
        if (i == 0)
            assert_non_null(strstr(path, "/eval/deep/events.out.tfevents.1234567890.0000."));
        if (i == 3)
            assert_non_null(strstr(path, "/eval/deep/events.out.tfevents.1234567890.0003."));
        bel_free(before);
        before = path;
    }
    assert_non_null(strstr(before, "/eval/deep/events.out.tfevents.1234567895.0000."));
    bel_free(before);
    bel_free(dir);
}

// Files of older versions have no count in their names.
static void test_names_sort_behind_older_ones(void **state)
{
    (void)state;
    static const char *const older[] = {"events.out.tfevents.1000000000.host",
                                        "events.out.tfevents.1000000000.host.2",
                                        "events.out.tfevents.1000000000.0.host"};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        bel_event_file *file;
        bel_free(bel_test_file(bel_test_own_folder(), older[i], "", 0));
        char *left = bel_path_join(bel_test_own_folder(), older[i]);
        BEL_ASSERT_OK(bel_event_file_open_at(bel_test_own_folder(), 1e9, &file));
        assert_true(strcmp(left, bel_event_file_path(file)) < 0);
        BEL_ASSERT_OK(bel_event_file_close(file));
        bel_free(left);
    }
}

// A write that fails once loses nothing; a file that stays unwritable is reported.
static void test_errors_are_made_up_for(void **state)
{
    (void)state;
    bel_event_file *file;
    event got[4];
    bel_fault_set("write:1");
    BEL_ASSERT_FAILS(bel_event_file_open(bel_test_own_folder(), &file), BEL_RESOURCE_EXHAUSTED,
                     "events.out.tfevents");
    BEL_ASSERT_OK(bel_event_file_open(bel_test_own_folder(), &file));
    char *path = bel_xstrdup(bel_event_file_path(file));
    bel_event_file_scalar(file, 1, 1, "loss", 1);
    bel_fault_set("write:1");
    BEL_ASSERT_FAILS(bel_event_file_flush(file), BEL_RESOURCE_EXHAUSTED, path);
    bel_event_file_scalar(file, 2, 2, "loss", 2); // the disk has room again
    BEL_ASSERT_OK(bel_event_file_flush(file));
    bel_event_file_scalar(file, 3, 3, "loss", 3);
    bel_fault_set("write:1");
    BEL_ASSERT_FAILS(bel_event_file_close(file), BEL_RESOURCE_EXHAUSTED, path);
    bel_fault_set("");
    assert_int_equal(read_events(path, got, 4), 3); // the version and two scalars
    BEL_ASSERT_OK(bel_event_file_close(NULL));
    bel_free(path);
    char *blocked = bel_test_file(bel_test_own_folder(), "file", "x", 1);
    BEL_ASSERT_FAILS(bel_event_file_open(blocked, &file), BEL_INVALID_ARGUMENT, "file");
    bel_free(blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_golden_bytes),
        BEL_TEST_IN_FOLDER(test_events_read_back),
        BEL_TEST_IN_FOLDER(test_many_events_are_all_there),
        BEL_TEST_IN_FOLDER(test_names_sort_by_order),
        BEL_TEST_IN_FOLDER(test_names_sort_behind_older_ones),
        BEL_TEST_IN_FOLDER(test_errors_are_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
