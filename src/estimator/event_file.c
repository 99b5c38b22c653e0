// Event files: TFRecord framing around protocol-buffer messages so small that they are written by
// hand. The file has its own descriptor (base/file.h would replace a file of the same name, and
// reports errors only at the end).
#include "estimator/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

enum { FLUSH_BYTES = 64 * 1024 };

struct bel_event_file {
    char *path;
    int descriptor;
    int error;       // errno of the first failure, 0 so far
    bel_str pending; // whole records, not yet written
};

// --- Protocol buffers ---------------------------------------------------------------------------

// Field numbers of tensorflow.Event and what it holds.
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE_VALUE = 2,
    SESSION_LOG_STATUS = 1,
    SESSION_STATUS_START = 1,
};

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64_BIT = 1,
    WIRE_BYTES = 2,
    WIRE_32_BIT = 5
} wire_type;

// Seven bits to a byte, the lowest first; the top bit says that more follow.
static void put_varint(bel_str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        bel_str_append(out, &(char){(char)(value | 0x80)}, 1);
    bel_str_append(out, &(char){(char)value}, 1);
}

static void put_key(bel_str *out, int field, wire_type type)
{
    put_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_double(bel_str *out, int field, double value)
{
    char bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    put_key(out, field, WIRE_64_BIT);
    bel_str_append(out, bytes, sizeof bytes);
}

static void put_float(bel_str *out, int field, float value)
{
    char bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    put_key(out, field, WIRE_32_BIT);
    bel_str_append(out, bytes, sizeof bytes);
}

static void put_integer(bel_str *out, int field, int64_t value)
{
    put_key(out, field, WIRE_VARINT);
    put_varint(out, (uint64_t)value);
}

static void put_bytes(bel_str *out, int field, const char *bytes, size_t length)
{
    put_key(out, field, WIRE_BYTES);
    put_varint(out, length);
    bel_str_append(out, bytes, length);
}

// A message inside a message; frees it.
static void put_message(bel_str *out, int field, bel_str *message)
{
    put_bytes(out, field, message->text, message->length);
    bel_str_deinit(message);
}

// --- Records ------------------------------------------------------------------------------------

static void put_raw(bel_str *out, const void *data, size_t size)
{
    bel_str_append(out, data, size);
}

// length, checksum of the length, data, checksum of the data
static void put_record(bel_str *out, const bel_str *data)
{
    uint64_t length = data->length;
    uint32_t length_crc = bel_crc32c_masked(&length, sizeof length);
    uint32_t data_crc = bel_crc32c_masked(data->text, data->length);
    put_raw(out, &length, sizeof length);
    put_raw(out, &length_crc, sizeof length_crc);
    put_raw(out, data->text, data->length);
    put_raw(out, &data_crc, sizeof data_crc);
}

// What a failed write leaves is dropped, as the file is not written any more.
static void write_pending(bel_event_file *file)
{
    const char *bytes = file->pending.text;
    size_t left = file->pending.length;
    file->pending.length = 0;
    if (left == 0) return; // always so after an error
    if (bel_fault_write_fails()) {
        file->error = ENOSPC;
        return;
    }
    while (left > 0) {
        ssize_t wrote = write(file->descriptor, bytes, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            file->error = errno;
            return;
        }
        bytes += wrote;
        left -= (size_t)wrote;
    }
}

// Begins an event; its last field follows, then finish_event.
static bel_str begin_event(double wall_time, int64_t step)
{
    bel_str event = {0};
    put_double(&event, EVENT_WALL_TIME, wall_time);
    put_integer(&event, EVENT_STEP, step);
    return event;
}

static void finish_event(bel_event_file *file, bel_str *event)
{
    if (file->error == 0) put_record(&file->pending, event);
    if (file->pending.length >= FLUSH_BYTES) write_pending(file);
    bel_str_deinit(event);
}

// --- The file -----------------------------------------------------------------------------------

// Creates a file that was not there before, trying suffixes until one is free.
static bel_status *create_new(const char *dir, double wall_time, char **out_path,
                              int *out_descriptor)
{
    char host[256];
    if (gethostname(host, sizeof host) != 0) bel_snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0'; // a name that was cut has no end of its own
    char *name = bel_strf(BEL_EVENT_FILE_PREFIX "%010lld.%s", (long long)wall_time, host);
    char *stem = bel_path_join(dir, name);
    bel_free(name);
    char *path = bel_xstrdup(stem);
    int descriptor, error;
    for (int suffix = 1;; suffix++) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
        error = errno;
        if (descriptor >= 0 || error != EEXIST) break;
        bel_free(path);
        path = bel_strf("%s.%d", stem, suffix);
    }
    bel_free(stem);
    if (descriptor < 0) {
        bel_status *status = bel_file_error(error, "create", path);
        bel_free(path);
        return status;
    }
    *out_path = path;
    *out_descriptor = descriptor;
    return NULL;
}

bel_status *bel_event_file_open_at(const char *dir, double wall_time, bel_event_file **out_file)
{
    static const char version[] = "brain.Event:2";
    char *path = NULL;
    int descriptor = -1;
    BEL_TRY(bel_dir_create(dir));
    BEL_TRY(create_new(dir, wall_time, &path, &descriptor));
    bel_event_file *file = bel_xcalloc(1, sizeof *file);
    file->path = path;
    file->descriptor = descriptor;
    bel_str event = begin_event(wall_time, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    finish_event(file, &event);
    bel_status *status = bel_event_file_flush(file);
    if (status != NULL) {
        bel_status_ignore(bel_event_file_close(file)); // would only repeat the error
        return status;
    }
    *out_file = file;
    return NULL;
}

bel_status *bel_event_file_open(const char *dir, bel_event_file **out_file)
{
    return bel_event_file_open_at(dir, bel_clock_wall(), out_file);
}

void bel_event_file_scalar(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                           float value)
{
    bel_str event = begin_event(wall_time, step), summary = {0}, entry = {0};
    put_bytes(&entry, VALUE_TAG, tag, strlen(tag));
    put_float(&entry, VALUE_SIMPLE_VALUE, value);
    put_message(&summary, SUMMARY_VALUE, &entry);
    put_message(&event, EVENT_SUMMARY, &summary);
    finish_event(file, &event);
}

void bel_event_file_session_start(bel_event_file *file, int64_t step)
{
    bel_str event = begin_event(bel_clock_wall(), step), session_log = {0};
    put_integer(&session_log, SESSION_LOG_STATUS, SESSION_STATUS_START);
    put_message(&event, EVENT_SESSION_LOG, &session_log);
    finish_event(file, &event);
}

bel_status *bel_event_file_flush(bel_event_file *file)
{
    write_pending(file);
    return file->error == 0 ? NULL : bel_file_error(file->error, "write", file->path);
}

bel_status *bel_event_file_close(bel_event_file *file)
{
    if (file == NULL) return NULL;
    write_pending(file);
    if (file->error == 0 && fsync(file->descriptor) != 0) file->error = errno;
    if (close(file->descriptor) != 0 && file->error == 0) file->error = errno;
    bel_status *status = file->error == 0 ? NULL : bel_file_error(file->error, "write", file->path);
    bel_str_deinit(&file->pending);
    bel_free(file->path);
    bel_free(file);
    return status;
}

const char *bel_event_file_path(const bel_event_file *file)
{
    return file->path;
}

// --- Reading -------------------------------------------------------------------------------------

// What is left of a message.
typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct field {
    uint64_t number, varint;
    wire_type type;
    cursor bytes; // WIRE_BYTES
    float value;  // WIRE_32_BIT
} field;

// False: fewer bytes than that are left.
static bool take_raw(cursor *c, void *out, size_t size)
{
    if ((size_t)(c->end - c->at) < size) return false;
    memcpy(out, c->at, size);
    c->at += size;
    return true;
}

static bool take_varint(cursor *c, uint64_t *out_value)
{
    *out_value = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint64_t byte = (unsigned char)*c->at++;
        *out_value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

// False at the end, and where the message makes no sense.
static bool take_field(cursor *c, field *out)
{
    uint64_t key, skipped;
    *out = (field){0};
    if (!take_varint(c, &key)) return false;
    out->number = key >> 3;
    out->type = (wire_type)(key & 7);
    switch (out->type) {
    case WIRE_VARINT: return take_varint(c, &out->varint);
    case WIRE_64_BIT: return take_raw(c, &skipped, sizeof skipped);
    case WIRE_32_BIT: return take_raw(c, &out->value, sizeof out->value);
    case WIRE_BYTES:
        if (!take_varint(c, &out->varint) || out->varint > (uint64_t)(c->end - c->at)) return false;
        out->bytes = (cursor){c->at, c->at + out->varint};
        c->at += out->varint;
        return true;
    }
    return false;
}

// The scalars of a summary.
static void read_summary(cursor summary, bel_event event,
                         void (*each)(void *context, const bel_event *event), void *context)
{
    field entry, part;
    while (take_field(&summary, &entry)) {
        if (entry.number != SUMMARY_VALUE || entry.type != WIRE_BYTES) continue;
        bool is_scalar = false;
        event.tag = NULL;
        while (take_field(&entry.bytes, &part)) {
            if (part.number == VALUE_TAG && part.type == WIRE_BYTES) {
                event.tag = part.bytes.at;
                event.tag_length = (size_t)part.varint;
            } else if (part.number == VALUE_SIMPLE_VALUE && part.type == WIRE_32_BIT) {
                event.value = part.value;
                is_scalar = true;
            }
        }
        if (is_scalar && event.tag != NULL) each(context, &event);
    }
}

// A START comes before the event's scalars. The summary is read last, when the step is known.
static void read_event(cursor data, void (*each)(void *context, const bel_event *event),
                       void *context)
{
    bel_event event = {0};
    cursor summary = {0};
    field part, status;
    while (take_field(&data, &part)) {
        if (part.number == EVENT_STEP && part.type == WIRE_VARINT) {
            event.step = (int64_t)part.varint;
        } else if (part.number == EVENT_SUMMARY && part.type == WIRE_BYTES) {
            summary = part.bytes;
        } else if (part.number == EVENT_SESSION_LOG && part.type == WIRE_BYTES) {
            while (take_field(&part.bytes, &status)) {
                if (status.number == SESSION_LOG_STATUS && status.type == WIRE_VARINT)
                    event.starts = status.varint == SESSION_STATUS_START;
            }
        }
    }
    if (event.starts) each(context, &event);
    event.starts = false;
    read_summary(summary, event, each, context);
}

void bel_event_file_parse(const char *data, size_t size,
                          void (*each)(void *context, const bel_event *event), void *context)
{
    cursor file = {data, data + size};
    for (;;) {
        uint64_t length;
        uint32_t length_crc, data_crc;
        if (!take_raw(&file, &length, sizeof length)) return;
        if (!take_raw(&file, &length_crc, sizeof length_crc)) return;
        if (length_crc != bel_crc32c_masked(&length, sizeof length)) return;
        if (length > (uint64_t)(file.end - file.at)) return;
        cursor event = {file.at, file.at + length};
        file.at += length;
        if (!take_raw(&file, &data_crc, sizeof data_crc)) return;
        if (data_crc != bel_crc32c_masked(event.at, (size_t)length)) return;
        read_event(event, each, context);
    }
}
