// Writer and reader of safetensors. The writer parses its header with the reader's code before it
// writes a byte, so the two always agree on what a valid file is.
//
// Order of the data: tensors whose size is a multiple of 64 first, then 32, 16, 8, 4, 2, 1. The
// format allows no holes. In this order the most tensors begin at multiples of 64, and every
// element is at a multiple of its size.
#include "checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie");

enum { DATA_ALIGNMENT = 64, LENGTH_BYTES = 8, WRITE_BLOCK_BYTES = 1 << 20 };

static const char *const dtype_names[] = {
    [BEL_DTYPE_F32] = "F32", [BEL_DTYPE_F64] = "F64",   [BEL_DTYPE_I32] = "I32",
    [BEL_DTYPE_I64] = "I64", [BEL_DTYPE_U8] = "U8",     [BEL_DTYPE_BOOL] = "BOOL",
    [BEL_DTYPE_F16] = "F16", [BEL_DTYPE_BF16] = "BF16",
};
enum { DTYPE_COUNT = sizeof dtype_names / sizeof dtype_names[0] };

// --- The header as text -------------------------------------------------------------------------

// Computes the bytes of a tensor; false if the shape is open or the product overflows.
static bool tensor_bytes(bel_dtype dtype, const bel_shape *shape, uint64_t *out_bytes)
{
    uint64_t bytes = bel_dtype_size(dtype);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return false;
        if (__builtin_mul_overflow(bytes, (uint64_t)shape->dims[i], &bytes)) return false;
    }
    *out_bytes = bytes;
    return bytes <= INT64_MAX;
}

typedef struct header_parser {
    const char *source;
    bel_arena *arena;
    uint64_t data_start; // offset of the data from the start of the file
    bel_safetensors_entry *entries;
    size_t count, capacity;
} header_parser;

static bel_status *visit_metadata(void *context, const char *name, const bel_json_value *value)
{
    const header_parser *parser = context;
    if (bel_json_value_string(value) != NULL) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: __metadata__ \"%s\": expected a text", parser->source, name);
}

static bel_status *parse_dtype(const header_parser *parser, const char *name,
                               const bel_json_value *value, bel_dtype *out_dtype)
{
    const char *text = "none";
    if (bel_json_string(value, "dtype", &text)) {
        for (int i = 0; i < DTYPE_COUNT; i++) {
            if (dtype_names[i] == NULL || strcmp(text, dtype_names[i]) != 0) continue;
            *out_dtype = (bel_dtype)i;
            return NULL;
        }
    }
    return BEL_ERR(
        BEL_DATA_LOSS,
        "%s: tensor \"%s\": expected dtype F32, F64, F16, BF16, I32, I64, U8 or BOOL, got %s",
        parser->source, name, text);
}

static bel_status *parse_shape(const header_parser *parser, const char *name,
                               const bel_json_value *value, bel_shape *out_shape)
{
    const bel_json_value *dims = bel_json_member(value, "shape");
    size_t rank = bel_json_length(dims);
    if (dims == NULL || rank > BEL_MAX_RANK) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: tensor \"%s\": expected a shape of at most %d dimensions, "
                       "got %zu",
                       parser->source, name, BEL_MAX_RANK, rank);
    }
    bel_shape shape = {.rank = (int32_t)rank};
    for (size_t i = 0; i < rank; i++) {
        if (!bel_json_value_i64(bel_json_at(dims, i), &shape.dims[i]) || shape.dims[i] < 0) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: tensor \"%s\": dimension %zu: expected an integer from 0 up",
                           parser->source, name, i);
        }
    }
    *out_shape = shape;
    return NULL;
}

static bel_status *visit_tensor(void *context, const char *name, const bel_json_value *value)
{
    header_parser *parser = context;
    if (strcmp(name, "__metadata__") == 0) return bel_json_each(value, visit_metadata, parser);

    bel_safetensors_entry entry = {0};
    BEL_TRY(parse_dtype(parser, name, value, &entry.dtype));
    BEL_TRY(parse_shape(parser, name, value, &entry.shape));
    const bel_json_value *offsets = bel_json_member(value, "data_offsets");
    int64_t begin, end;
    if (bel_json_length(offsets) != 2 || !bel_json_value_i64(bel_json_at(offsets, 0), &begin) ||
        !bel_json_value_i64(bel_json_at(offsets, 1), &end) || begin < 0 || end < begin) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: tensor \"%s\": expected data_offsets [begin, end]",
                       parser->source, name);
    }
    if (!tensor_bytes(entry.dtype, &entry.shape, &entry.size_bytes) ||
        entry.size_bytes != (uint64_t)(end - begin)) {
        char shape_text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: tensor \"%s\": %s %s does not take the %lld bytes of its "
                       "data_offsets",
                       parser->source, name, dtype_names[entry.dtype],
                       bel_shape_text(&entry.shape, shape_text), (long long)(end - begin));
    }
    entry.name = bel_arena_strdup(parser->arena, name);
    entry.offset = parser->data_start + (uint64_t)begin; // both below 2^63: no wrap
    parser->entries =
        bel_xgrow(parser->entries, &parser->capacity, parser->count + 1, sizeof entry);
    parser->entries[parser->count++] = entry;
    return NULL;
}

static int compare_places(const void *a, const void *b)
{
    const bel_safetensors_entry *left = a, *right = b;
    if (left->offset != right->offset) return left->offset < right->offset ? -1 : 1;
    return (left->size_bytes > right->size_bytes) - (left->size_bytes < right->size_bytes);
}

static int compare_names(const void *a, const void *b)
{
    const bel_safetensors_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

// The tensors must follow one another from the first to the last byte of the data.
static bel_status *check_places(header_parser *parser, uint64_t file_size)
{
    uint64_t next = parser->data_start;
    if (parser->count > 0) {
        qsort(parser->entries, parser->count, sizeof parser->entries[0], compare_places);
    }
    for (size_t i = 0; i < parser->count; i++) {
        const bel_safetensors_entry *entry = &parser->entries[i];
        if (entry->offset != next) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: tensor \"%s\": expected to begin at byte %llu of the "
                           "file, begins at %llu",
                           parser->source, entry->name, (unsigned long long)next,
                           (unsigned long long)entry->offset);
        }
        next += entry->size_bytes;
        if (next > file_size) break;
    }
    if (next != file_size) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: the header describes %s %llu bytes, the file has %llu",
                       parser->source, next > file_size ? "at least" : "only",
                       (unsigned long long)next, (unsigned long long)file_size);
    }
    return NULL;
}

// Parses a header of `length` bytes in a file of `file_size` bytes.
static bel_status *parse_header(const char *text, size_t length, uint64_t file_size,
                                const char *source, bel_arena *arena,
                                bel_safetensors_list *out_list)
{
    if (length == 0 || text[0] != '{') {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a header that begins with \"{\"", source);
    }
    header_parser parser = {
        .source = source,
        .arena = arena,
        .data_start = LENGTH_BYTES + length,
    };
    bel_json *json = NULL;
    bel_status *status = bel_json_parse(text, length, source, &json);
    if (status == NULL) status = bel_json_each(bel_json_root(json), visit_tensor, &parser);
    if (status == NULL) status = check_places(&parser, file_size);
    if (status == NULL) {
        *out_list = (bel_safetensors_list){.count = (int)parser.count};
    }
    if (status == NULL && parser.count > 0) {
        qsort(parser.entries, parser.count, sizeof parser.entries[0], compare_names);
        out_list->entries =
            bel_arena_copy(arena, parser.entries, parser.count * sizeof parser.entries[0]);
    }
    bel_free(parser.entries);
    bel_json_destroy(json);
    return status;
}

// --- Reading ------------------------------------------------------------------------------------

bel_status *bel_safetensors_read_header(const bel_disk_file *file, bel_arena *arena,
                                        bel_safetensors_list *out_list)
{
    uint64_t length;
    BEL_TRY(bel_disk_file_read(file, 0, &length, sizeof length));
    uint64_t room = file->size_bytes - LENGTH_BYTES;
    if (length > room || length > BEL_SAFETENSORS_MAX_HEADER) {
        return BEL_ERR(
            BEL_DATA_LOSS, "%s: expected a header of at most %llu bytes, got %llu", file->path,
            (unsigned long long)(room < BEL_SAFETENSORS_MAX_HEADER ? room
                                                                   : BEL_SAFETENSORS_MAX_HEADER),
            (unsigned long long)length);
    }
    char *text = bel_xmalloc((size_t)length);
    bel_status *status = bel_disk_file_read(file, LENGTH_BYTES, text, (size_t)length);
    if (status == NULL) {
        status = parse_header(text, (size_t)length, file->size_bytes, file->path, arena, out_list);
    }
    bel_free(text);
    return status;
}

const bel_safetensors_entry *bel_safetensors_find(const bel_safetensors_list *list,
                                                  const char *name)
{
    if (list->count == 0) return NULL;
    bel_safetensors_entry key = {.name = name};
    return bsearch(&key, list->entries, (size_t)list->count, sizeof key, compare_names);
}

// --- Writing ------------------------------------------------------------------------------------

typedef struct placed {
    const bel_safetensors_input *input;
    uint64_t size_bytes;
} placed;

// The largest power of two up to 64 that divides a size: the alignment of the next tensor.
static uint64_t alignment_of(uint64_t size_bytes)
{
    uint64_t lowest_bit = size_bytes & (~size_bytes + 1);
    return size_bytes == 0 || lowest_bit > DATA_ALIGNMENT ? DATA_ALIGNMENT : lowest_bit;
}

static int compare_placed(const void *a, const void *b)
{
    const placed *left = a, *right = b;
    uint64_t left_alignment = alignment_of(left->size_bytes);
    uint64_t right_alignment = alignment_of(right->size_bytes);
    if (left_alignment != right_alignment) return left_alignment > right_alignment ? -1 : 1;
    return strcmp(left->input->name, right->input->name);
}

static bel_status *safetensors_place(const char *path, const bel_safetensors_input *tensors,
                                     int tensor_count, placed *out_order)
{
    for (int i = 0; i < tensor_count; i++) {
        const bel_safetensors_input *input = &tensors[i];
        out_order[i].input = input;
        if ((int)input->dtype >= DTYPE_COUNT || input->name[0] == '\0' ||
            strcmp(input->name, "__metadata__") == 0 ||
            !tensor_bytes(input->dtype, &input->shape, &out_order[i].size_bytes)) {
            char shape_text[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: a tensor \"%s\" of %s %s cannot be stored",
                           path, input->name, bel_dtype_name(input->dtype),
                           bel_shape_text(&input->shape, shape_text));
        }
    }
    if (tensor_count > 0) qsort(out_order, (size_t)tensor_count, sizeof *out_order, compare_placed);
    return NULL;
}

static void write_entry(bel_str *out, const placed *tensor, uint64_t begin)
{
    const bel_shape *shape = &tensor->input->shape;
    bel_json_write_exact(out, tensor->input->name);
    bel_str_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", dtype_names[tensor->input->dtype]);
    for (int32_t i = 0; i < shape->rank; i++)
        bel_str_printf(out, "%s%lld", i > 0 ? "," : "", (long long)shape->dims[i]);
    bel_str_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                   (unsigned long long)begin + tensor->size_bytes);
}

// Builds the header, padded with spaces so that the data begins at a multiple of 64.
static uint64_t write_header(bel_str *out, const bel_safetensors_text *metadata, int metadata_count,
                             const placed *order, int tensor_count)
{
    const char *separator = "";
    bel_str_puts(out, "{");
    if (metadata_count > 0) {
        bel_str_puts(out, "\"__metadata__\":{");
        for (int i = 0; i < metadata_count; i++) {
            if (i > 0) bel_str_puts(out, ",");
            bel_json_write_exact(out, metadata[i].name);
            bel_str_puts(out, ":");
            bel_json_write_exact(out, metadata[i].value);
        }
        bel_str_puts(out, "}");
        separator = ",";
    }
    uint64_t begin = 0;
    for (int i = 0; i < tensor_count; i++) {
        bel_str_puts(out, separator);
        write_entry(out, &order[i], begin);
        begin += order[i].size_bytes;
        separator = ",";
    }
    bel_str_puts(out, "}");
    while ((LENGTH_BYTES + out->length) % DATA_ALIGNMENT != 0)
        bel_str_puts(out, " ");
    return begin;
}

// Writes in blocks, so that the writer's checksum warms the cache for the copy to the system.
static void write_data(bel_file_writer *writer, const void *data, uint64_t size_bytes)
{
    const unsigned char *bytes = data;
    while (size_bytes > 0) {
        size_t block = size_bytes < WRITE_BLOCK_BYTES ? (size_t)size_bytes : WRITE_BLOCK_BYTES;
        bel_file_writer_write(writer, bytes, block);
        bytes += block;
        size_bytes -= block;
    }
}

static bel_status *write_produced(bel_file_writer *writer, const bel_safetensors_input *input,
                                  uint64_t size_bytes)
{
    int64_t count = input->shape.dims[0], item = count > 0 ? (int64_t)size_bytes / count : 0;
    if (item == 0) return NULL;
    int64_t most = item < WRITE_BLOCK_BYTES ? WRITE_BLOCK_BYTES / item : 1;
    void *block = bel_xmalloc((size_t)(most * item));
    bel_status *status = NULL;
    for (int64_t first = 0; first < count && status == NULL; first += most) {
        int64_t n = count - first < most ? count - first : most;
        status = input->produce(input->context, first, n, block);
        if (status == NULL) bel_file_writer_write(writer, block, (size_t)(n * item));
    }
    bel_free(block);
    return status;
}

static bel_status *write_file(const char *path, const bel_str *header, const placed *order,
                              int tensor_count, uint64_t *out_size_bytes, uint32_t *out_crc32c)
{
    bel_file_writer *writer;
    BEL_TRY(bel_file_writer_open(path, &writer));
    uint64_t length = header->length;
    bel_file_writer_write(writer, &length, sizeof length);
    bel_file_writer_write(writer, header->text, header->length);
    bel_status *status = NULL;
    for (int i = 0; i < tensor_count && status == NULL; i++) {
        if (order[i].input->produce != NULL) {
            status = write_produced(writer, order[i].input, order[i].size_bytes);
        } else {
            write_data(writer, order[i].input->data, order[i].size_bytes);
        }
    }
    if (status == NULL) {
        status = bel_file_writer_finish(writer, out_size_bytes, out_crc32c);
    } else {
        bel_file_writer_abandon(writer);
    }
    if (status != NULL) {
        bel_status_ignore(bel_dir_remove(path)); // the write's error has the reason
    }
    return status;
}

// Reports input that the reader would refuse as the caller's mistake, before anything is written.
static bel_status *check_header(const char *path, const bel_str *header, uint64_t data_bytes)
{
    bel_arena *arena = bel_arena_create();
    bel_safetensors_list list;
    bel_status *status =
        parse_header(header->text, header->length, LENGTH_BYTES + header->length + data_bytes, path,
                     arena, &list);
    bel_arena_destroy(arena);
    if (status == NULL && header->length <= BEL_SAFETENSORS_MAX_HEADER) return NULL;
    bel_status *refused =
        BEL_ERR(BEL_INVALID_ARGUMENT, "tensors cannot be stored: %s",
                status != NULL ? bel_status_message(status) : "their names make too long a header");
    bel_status_destroy(status);
    return refused;
}

bel_status *bel_safetensors_write(const char *path, const bel_safetensors_text *metadata,
                                  int metadata_count, const bel_safetensors_input *tensors,
                                  int tensor_count, uint64_t *out_size_bytes, uint32_t *out_crc32c)
{
    bel_str header = {0};
    placed *order = bel_xcalloc((size_t)tensor_count, sizeof *order);
    bel_status *status = safetensors_place(path, tensors, tensor_count, order);
    if (status == NULL) {
        uint64_t data_bytes = write_header(&header, metadata, metadata_count, order, tensor_count);
        status = check_header(path, &header, data_bytes);
    }
    if (status == NULL) {
        status = write_file(path, &header, order, tensor_count, out_size_bytes, out_crc32c);
    }
    bel_free(order);
    bel_str_deinit(&header);
    return status;
}
