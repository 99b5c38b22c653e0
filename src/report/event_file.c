// Event files: TFRecord framing around protocol-buffer messages (proto/events.proto). The file has
// a separate descriptor (base/file.h would replace a file of the same name, and reports errors only
// at the end).
#include "report/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "events.pb-c.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

enum { FLUSH_BYTES = 64 * 1024, MOST_PENDING_BYTES = 4 << 20, SESSION_STATUS_START = 1 };
enum { DT_DOUBLE = 2, DT_STRING = 7 }; // tensor types
enum { MOST_ROWS = 1 << 12 };          // maximum when reading a table, also of columns

struct bel_event_file {
    char *path;
    int descriptor;
    int error;       // errno of the last write, 0: success
    bel_str pending; // unwritten records; the first may be partly written
};

// --- Records ------------------------------------------------------------------------------------

static void put_raw(bel_str *out, const void *data, size_t size)
{
    bel_str_append(out, data, size);
}

// Appends length, checksum of the length, data, checksum of the data.
static void put_record(bel_str *out, const uint8_t *data, uint64_t length)
{
    uint32_t length_crc = bel_crc32c_masked(&length, sizeof length);
    uint32_t data_crc = bel_crc32c_masked(data, length);
    put_raw(out, &length, sizeof length);
    put_raw(out, &length_crc, sizeof length_crc);
    put_raw(out, data, length);
    put_raw(out, &data_crc, sizeof data_crc);
}

// Unwritten bytes stay in order, so that the file has no gap.
static void write_pending(bel_event_file *file)
{
    size_t written = 0, length = file->pending.length;
    if (length == 0) return;
    file->error = bel_fault_write_fails() ? ENOSPC : 0;
    while (written < length && file->error == 0) {
        ssize_t wrote = write(file->descriptor, file->pending.text + written, length - written);
        if (wrote >= 0)
            written += (size_t)wrote;
        else if (errno != EINTR)
            file->error = errno;
    }
    memmove(file->pending.text, file->pending.text + written, length - written);
    file->pending.length = length - written;
}

static bel_status *last_error(const bel_event_file *file)
{
    return file->error == 0 ? NULL : bel_file_error(file->error, "write", file->path);
}

// Makes an event at a step. The caller adds its content and calls put_event.
static Events__Event event_at(double wall_time, int64_t step)
{
    Events__Event event;
    events__event__init(&event);
    event.has_wall_time = event.has_step = true;
    event.wall_time = wall_time;
    event.step = step;
    return event;
}

static void put_event(bel_event_file *file, const Events__Event *event)
{
    if (file->pending.length >= MOST_PENDING_BYTES) return;
    size_t length = events__event__get_packed_size(event);
    uint8_t *data = bel_xmalloc(length + 1);
    events__event__pack(event, data);
    put_record(&file->pending, data, length);
    bel_free(data);
    if (file->pending.length >= FLUSH_BYTES) write_pending(file);
}

// Puts a summary of one value; its tag and content are the caller's.
static void put_value(bel_event_file *file, double wall_time, int64_t step, Events__Value *value)
{
    Events__Event event = event_at(wall_time, step);
    Events__Summary summary;
    events__summary__init(&summary);
    summary.value = &value;
    summary.n_value = 1;
    event.what_case = EVENTS__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    put_event(file, &event);
}

// --- The file -----------------------------------------------------------------------------------

// Sort key of the names in a folder, which is the order of the files' creation.
typedef struct place {
    long long seconds;
    int count; // earlier files of that second
} place;

enum { MOST_OF_SECOND = 9999 };

static bool is_before(place a, place b)
{
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.count < b.count;
}

// Reads the place of a name; false: it is no event file. A name without a count, from an older
// version, sorts after all of its second.
static bool read_place(const char *name, place *out)
{
    size_t prefix = strlen(BEL_EVENT_FILE_PREFIX);
    if (strncmp(name, BEL_EVENT_FILE_PREFIX, prefix) != 0) return false;
    const char *seconds = name + prefix;
    size_t length = strspn(seconds, "0123456789");
    int64_t value, count;
    if (seconds[length] != '.' || !bel_parse_i64(seconds, length, &value)) return false;
    const char *second = seconds + length + 1;
    size_t digits = strspn(second, "0123456789");
    bool counted = digits == 4 && second[digits] == '.' && bel_parse_i64(second, digits, &count);
    *out = (place){.seconds = value, .count = counted ? (int)count : MOST_OF_SECOND};
    return true;
}

// Finds the place of a new file: the time, or after the last file if that has the same second or a
// later one.
static bel_status *next_place(const char *dir, double wall_time, place *out)
{
    char **names = NULL;
    size_t count = 0;
    place last = {.seconds = -1};
    BEL_TRY(bel_dir_list(dir, &names, &count));
    for (size_t i = 0; i < count; i++) {
        place found;
        if (read_place(names[i], &found) && is_before(last, found)) last = found;
    }
    bel_dir_names_free(names, count);
    *out = (place){.seconds = (long long)wall_time};
    if (is_before(last, *out)) return NULL;
    bool full = last.count >= MOST_OF_SECOND;
    *out = (place){.seconds = last.seconds + full, .count = full ? 0 : last.count + 1};
    return NULL;
}

// Creates a new file after all others. If another process creates the same name at that moment, it
// tries again.
static bel_status *create_new(const char *dir, double wall_time, char **out_path,
                              int *out_descriptor)
{
    char host[256], *path = NULL;
    if (gethostname(host, sizeof host) != 0) bel_snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0'; // a truncated name has no terminator
    int descriptor, error;
    do {
        place at;
        bel_free(path);
        path = NULL;
        BEL_TRY(next_place(dir, wall_time, &at));
        char *name = bel_strf(BEL_EVENT_FILE_PREFIX "%010lld.%04d.%s", at.seconds, at.count, host);
        path = bel_path_join(dir, name);
        bel_free(name);
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
        error = errno;
    } while (descriptor < 0 && error == EEXIST);
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
    static char version[] = "brain.Event:2";
    char *path = NULL;
    int descriptor = -1;
    BEL_TRY(bel_dir_create(dir));
    BEL_TRY(create_new(dir, wall_time, &path, &descriptor));
    bel_event_file *file = bel_xcalloc(1, sizeof *file);
    file->path = path;
    file->descriptor = descriptor;
    Events__Event event = event_at(wall_time, 0);
    event.what_case = EVENTS__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    put_event(file, &event);
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

// Casts the tag: protobuf-c's texts are not const, and are never written to.
static Events__Value value_of(const char *tag)
{
    Events__Value value;
    events__value__init(&value);
    value.tag = (char *)(uintptr_t)tag;
    return value;
}

void bel_event_file_scalar(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                           float value)
{
    Events__Value said = value_of(tag);
    said.what_case = EVENTS__VALUE__WHAT_SIMPLE_VALUE;
    said.simple_value = value;
    put_value(file, wall_time, step, &said);
}

void bel_event_file_histogram(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                              const bel_histogram *histogram)
{
    Events__Histogram histo;
    events__histogram__init(&histo);
    histo.has_min = histo.has_max = histo.has_num = true;
    histo.has_sum = histo.has_sum_squares = true;
    histo.min = histogram->min;
    histo.max = histogram->max;
    histo.num = histogram->count;
    histo.sum = histogram->sum;
    histo.sum_squares = histogram->sum_squares;
    histo.bucket_limit = (double *)(uintptr_t)histogram->limits;
    histo.bucket = (double *)(uintptr_t)histogram->buckets;
    histo.n_bucket_limit = histo.n_bucket = (size_t)histogram->bucket_count;
    Events__Value said = value_of(tag);
    said.what_case = EVENTS__VALUE__WHAT_HISTO;
    said.histo = &histo;
    put_value(file, wall_time, step, &said);
}

void bel_event_file_image(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                          const bel_event_image *image)
{
    Events__Image said_image;
    events__image__init(&said_image);
    said_image.has_height = said_image.has_width = said_image.has_colorspace = true;
    said_image.height = image->height;
    said_image.width = image->width;
    said_image.colorspace = image->channels;
    said_image.has_encoded_image_string = true;
    said_image.encoded_image_string.data = (uint8_t *)(uintptr_t)image->png;
    said_image.encoded_image_string.len = image->png_bytes;
    Events__Value said = value_of(tag);
    said.what_case = EVENTS__VALUE__WHAT_IMAGE;
    said.image = &said_image;
    put_value(file, wall_time, step, &said);
}

// Puts a tensor of up to two dimensions, with the caller's content, marked for a plugin.
static void put_tensor(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                       Events__Tensor *tensor, const int *dims, size_t rank, const char *plugin)
{
    Events__Dim list[2], *pointers[2];
    Events__Shape shape;
    Events__PluginData plugin_data;
    Events__Metadata metadata;
    events__shape__init(&shape);
    events__plugin_data__init(&plugin_data);
    events__metadata__init(&metadata);
    for (size_t i = 0; i < rank; i++) {
        events__dim__init(pointers[i] = &list[i]);
        list[i].has_size = true;
        list[i].size = dims[i];
    }
    shape.dim = pointers;
    shape.n_dim = rank;
    tensor->has_dtype = true;
    tensor->tensor_shape = &shape;
    plugin_data.plugin_name = (char *)(uintptr_t)plugin;
    metadata.plugin_data = &plugin_data;
    Events__Value said = value_of(tag);
    said.what_case = EVENTS__VALUE__WHAT_TENSOR;
    said.tensor = tensor;
    said.metadata = &metadata;
    put_value(file, wall_time, step, &said);
}

// Writes a vector of one string, which the text plugin shows.
void bel_event_file_text(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                         const char *text)
{
    ProtobufCBinaryData bytes = {strlen(text), (uint8_t *)(uintptr_t)text};
    Events__Tensor tensor;
    events__tensor__init(&tensor);
    tensor.dtype = DT_STRING;
    tensor.string_val = &bytes;
    tensor.n_string_val = 1;
    put_tensor(file, wall_time, step, tag, &tensor, (const int[]){1}, 1, "text");
}

// "belfry" is not a plugin of TensorBoard.
void bel_event_file_numbers(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                            const double *numbers, int rows, int columns)
{
    Events__Tensor tensor;
    events__tensor__init(&tensor);
    tensor.dtype = DT_DOUBLE;
    tensor.has_tensor_content = true;
    tensor.tensor_content.data = (uint8_t *)(uintptr_t)numbers;
    tensor.tensor_content.len = (size_t)rows * (size_t)columns * sizeof *numbers;
    put_tensor(file, wall_time, step, tag, &tensor, (const int[]){rows, columns}, 2, "belfry");
}

void bel_event_file_session_start(bel_event_file *file, int64_t step)
{
    Events__Event event = event_at(bel_clock_wall(), step);
    Events__SessionLog log;
    events__session_log__init(&log);
    log.has_status = true;
    log.status = SESSION_STATUS_START;
    event.what_case = EVENTS__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    put_event(file, &event);
}

bel_status *bel_event_file_flush(bel_event_file *file)
{
    write_pending(file);
    return last_error(file);
}

bel_status *bel_event_file_sync(bel_event_file *file)
{
    write_pending(file);
    if (file->error == 0 && fsync(file->descriptor) != 0) file->error = errno;
    bel_status *status = last_error(file);
    if (file->pending.length == 0) file->error = 0; // all is written, if not synced
    return status;
}

bel_status *bel_event_file_close(bel_event_file *file)
{
    if (file == NULL) return NULL;
    write_pending(file);
    if (file->error == 0 && fsync(file->descriptor) != 0) file->error = errno;
    if (close(file->descriptor) != 0 && file->error == 0) file->error = errno;
    bel_status *status = last_error(file);
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

static bool take_raw(const char **at, const char *end, void *out, size_t size)
{
    if ((size_t)(end - *at) < size) return false;
    memcpy(out, *at, size);
    *at += size;
    return true;
}

// Reads the numbers of a table, aligned. NULL: the tensor is no table, or its size does not match
// its shape. Free with bel_free.
static double *read_numbers(const Events__Tensor *tensor, bel_event *said)
{
    const Events__Shape *shape = tensor->tensor_shape;
    if (tensor->dtype != DT_DOUBLE || !tensor->has_tensor_content || shape == NULL) return NULL;
    if (shape->n_dim != 2) return NULL;
    int64_t rows = shape->dim[0]->size, columns = shape->dim[1]->size;
    if (rows < 1 || columns < 1 || rows > MOST_ROWS || columns > MOST_ROWS) return NULL;
    size_t count = (size_t)rows * (size_t)columns;
    if (tensor->tensor_content.len != count * sizeof(double)) return NULL;
    double *numbers = bel_xcalloc(count, sizeof *numbers);
    memcpy(numbers, tensor->tensor_content.data, tensor->tensor_content.len);
    said->rows = (int)rows;
    said->columns = (int)columns;
    return numbers;
}

static void read_value(const Events__Value *value, bel_event said,
                       void (*each)(void *context, const bel_event *event), void *context)
{
    double *numbers = NULL;
    bool scalar = value->what_case == EVENTS__VALUE__WHAT_SIMPLE_VALUE;
    if (value->what_case == EVENTS__VALUE__WHAT_TENSOR)
        numbers = read_numbers(value->tensor, &said);
    if (value->tag != NULL && (scalar || numbers != NULL)) {
        said.tag = value->tag;
        said.numbers = numbers;
        if (scalar) said.value = value->simple_value;
        each(context, &said);
    }
    bel_free(numbers);
}

// Reads a START, scalars and tables of numbers. Ignores bytes that are no event, and other events.
static void read_event(const char *data, size_t length,
                       void (*each)(void *context, const bel_event *event), void *context)
{
    bel_budget budget = bel_budget_of(length);
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    Events__Event *event = events__event__unpack(&allocator, length, (const uint8_t *)data);
    if (event == NULL) return;
    bel_event said = {.step = event->step};
    if (event->what_case == EVENTS__EVENT__WHAT_SESSION_LOG) {
        said.starts = event->session_log->status == SESSION_STATUS_START;
        if (said.starts) each(context, &said);
    }
    bool summary = event->what_case == EVENTS__EVENT__WHAT_SUMMARY;
    for (size_t i = 0; summary && i < event->summary->n_value; i++)
        read_value(event->summary->value[i], said, each, context);
    events__event__free_unpacked(event, &allocator);
}

void bel_event_file_parse(const char *data, size_t size,
                          void (*each)(void *context, const bel_event *event), void *context)
{
    const char *at = data, *end = data + size;
    for (;;) {
        uint64_t length;
        uint32_t length_crc, data_crc;
        if (!take_raw(&at, end, &length, sizeof length)) return;
        if (!take_raw(&at, end, &length_crc, sizeof length_crc)) return;
        if (length_crc != bel_crc32c_masked(&length, sizeof length)) return;
        if (length > (uint64_t)(end - at)) return;
        const char *event = at;
        at += length;
        if (!take_raw(&at, end, &data_crc, sizeof data_crc)) return;
        if (data_crc != bel_crc32c_masked(event, (size_t)length)) return;
        read_event(event, (size_t)length, each, context);
    }
}
