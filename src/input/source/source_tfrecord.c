// TFRecord files. A record is its length (8 bytes), checksum of the length (4), data, checksum of
// the data (4), all little-endian. Files have no index; opening makes one by walking from length to
// length. A length that does not fit its checksum is an error of the file, because the start of the
// next record is unknown. Data is checked when it is read, so wrong data is an error of only its
// record.
//
// Files may be packed as a whole. gzip has a magic number, but zlib has none. So a file is taken
// for zlib if its first length does not fit its checksum and its first two bytes are a zlib header.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/unpack.h"
#include "input/source/example.h"
#include "input/source/record_files.h"

enum { LENGTH_BYTES = 8, CHECKSUM_BYTES = 4, HEADER_BYTES = LENGTH_BYTES + CHECKSUM_BYTES };

typedef struct tfrecord_source {
    bel_source base;
    bel_arena *arena;
    const bel_tfrecord_options *options;
    bel_record_files files;
} tfrecord_source;

// --- Framing -------------------------------------------------------------------------------------

static uint64_t little_endian(const char *data, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | (unsigned char)data[i];
    return value;
}

static bool length_fits(const char *header)
{
    return bel_crc32c_masked(header, LENGTH_BYTES) ==
           little_endian(header + LENGTH_BYTES, CHECKSUM_BYTES);
}

static bel_status *check_beginning(bel_indexed_file *file)
{
    const bel_file_view *view = &file->view;
    if (view->size == 0 || (view->size >= HEADER_BYTES && length_fits(view->data))) return NULL;
    if (bel_is_zlib(view->data, view->size)) BEL_TRY(bel_file_view_unpack(&file->view, file->path));
    if (view->size == 0 || (view->size >= HEADER_BYTES && length_fits(view->data))) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: not a TFRecord file: expected a length and its checksum at the beginning",
                   file->path);
}

static bel_status *index_records(bel_indexed_file *file)
{
    BEL_TRY(check_beginning(file));
    const char *data = file->view.data;
    size_t size = file->view.size, at = 0;
    while (at < size) {
        size_t left = size - at;
        bool whole = left >= HEADER_BYTES + CHECKSUM_BYTES;
        if (whole && !length_fits(data + at)) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: record %zu: the length at byte %zu does not fit its checksum",
                           file->path, file->starts.count, at);
        }
        uint64_t length = whole ? little_endian(data + at, LENGTH_BYTES) : 0;
        if (!whole || length > left - HEADER_BYTES - CHECKSUM_BYTES) {
            return BEL_ERR(
                BEL_DATA_LOSS,
                "%s: record %zu: expected a record at byte %zu, but the file ends within "
                "it: at byte %zu",
                file->path, file->starts.count, at, size);
        }
        BEL_TRY_CTX(bel_offset_list_append(&file->starts, &(int64_t){(int64_t)at}, 1), "%s",
                    file->path);
        at += HEADER_BYTES + (size_t)length + CHECKSUM_BYTES;
    }
    return NULL;
}

// --- Features ------------------------------------------------------------------------------------

// Error of a feature. The caller prepends the file and the record to the message.
static bel_status *feature_error(const bel_example_feature *feature, const char *expected,
                                 const char *got)
{
    return BEL_ERR(BEL_DATA_LOSS, "feature \"%s\": expected %s, got %s", feature->key, expected,
                   got);
}

static const char *list_of(bel_dtype dtype)
{
    if (dtype == BEL_DTYPE_F32) return "float_list";
    return dtype == BEL_DTYPE_I64 ? "int64_list" : "bytes_list";
}

// Fills a feature that the record does not have.
static bel_status *fill_missing(const bel_source *base, int index,
                                const bel_example_feature *feature, const bel_sink *sink)
{
    const bel_source_field *field = &base->fields[index];
    bool open = field->shape.rank > 0 && field->shape.dims[0] < 0;
    if (feature->dtype == BEL_DTYPE_STRING && feature->missing != NULL) {
        size_t length = strlen(feature->missing);
        memcpy(bel_sink_place(sink, base, index, (int64_t)length), feature->missing, length);
        return NULL;
    }
    if (feature->missing == NULL && (!open || feature->dtype == BEL_DTYPE_STRING)) {
        return feature_error(feature, list_of(feature->dtype), "none");
    }
    char *to = bel_sink_place(sink, base, index, 0);
    int64_t elements = open ? 0 : bel_shape_elements(&field->shape);
    size_t size = bel_dtype_size(field->dtype);
    for (int64_t i = 0; i < elements; i++)
        memcpy(to + (size_t)i * size, feature->missing, size);
    return NULL;
}

// Number of rows in `count` elements; -1: the elements do not fit the shape.
static int64_t rows_of(const bel_shape *shape, int64_t count)
{
    if (shape->rank == 0) return count == 1 ? 1 : -1;
    int64_t row = 1;
    for (int32_t i = 1; i < shape->rank; i++)
        row *= shape->dims[i];
    if (count % row != 0 || (shape->dims[0] >= 0 && count / row != shape->dims[0])) return -1;
    return count / row;
}

static bel_status *fill_field(const bel_source *base, int index, const bel_example_feature *feature,
                              const bel_example_values *values, const bel_sink *sink)
{
    const bel_source_field *field = &base->fields[index];
    bool bytes = feature->dtype == BEL_DTYPE_STRING || feature->dtype == BEL_DTYPE_U8;
    if (strcmp(values->list, list_of(feature->dtype)) != 0)
        return feature_error(feature, list_of(feature->dtype), values->list);
    if (bytes && values->count != 1) {
        return BEL_ERR(BEL_DATA_LOSS, "feature \"%s\": expected a bytes_list of 1 value, got %zu",
                       feature->key, values->count);
    }
    size_t count = bytes ? values->byte_count : values->count;
    int64_t rows = rows_of(&field->shape, (int64_t)count);
    if (rows < 0) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_DATA_LOSS, "feature \"%s\": expected elements of shape %s, got %zu",
                       feature->key, bel_shape_text(&field->shape, text), count);
    }
    void *to = bel_sink_place(sink, base, index, rows);
    const void *from = bytes ? values->bytes : values->numbers;
    if (count > 0) memcpy(to, from, count * bel_dtype_size(feature->dtype));
    return NULL;
}

static bel_status *read_example(const tfrecord_source *source, const char *data, size_t size,
                                const bel_sink *sink)
{
    bel_example *example = bel_example_parse(data, size);
    if (example == NULL) return BEL_ERR(BEL_DATA_LOSS, "expected a tf.train.Example");
    bel_status *status = NULL;
    for (int i = 0; i < source->options->feature_count && status == NULL; i++) {
        const bel_example_feature *feature = &source->options->features[i];
        bel_example_values values;
        bool there = bel_example_find(example, feature->key, &values);
        // An empty list counts as a missing feature, if the feature may be missing.
        bool missing = !there || (values.count == 0 && feature->missing != NULL);
        status = missing ? fill_missing(&source->base, i, feature, sink)
                         : fill_field(&source->base, i, feature, &values, sink);
    }
    bel_example_destroy(example);
    return status;
}

// --- The source ----------------------------------------------------------------------------------

static bel_status *read_checked(const tfrecord_source *source, const char *record,
                                const bel_sink *sink)
{
    size_t length = (size_t)little_endian(record, LENGTH_BYTES);
    const char *data = record + HEADER_BYTES;
    if (bel_crc32c_masked(data, length) != little_endian(data + length, CHECKSUM_BYTES)) {
        return BEL_ERR(BEL_DATA_LOSS, "its %zu bytes do not fit their checksum", length);
    }
    if (source->options->feature_count > 0) return read_example(source, data, length, sink);
    char *to = bel_sink_place(sink, &source->base, 0, (int64_t)length);
    if (length > 0) memcpy(to, data, length);
    return NULL;
}

static bel_status *tfrecord_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const tfrecord_source *source = (const tfrecord_source *)base;
    size_t index;
    const bel_indexed_file *file = bel_record_files_find(&source->files, number, &index);
    const char *record = file->view.data + bel_offset_list_at(&file->starts, index);
    BEL_TRY_CTX(read_checked(source, record, sink), "%s: record %zu", file->path, index);
    return NULL;
}

static void tfrecord_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    size_t index;
    const bel_indexed_file *file =
        bel_record_files_find(&((const tfrecord_source *)base)->files, number, &index);
    bel_str_printf(out_text, "%s: record %zu", file->path, index);
}

static void tfrecord_ahead(const bel_source *base, int64_t number, int step)
{
    bel_record_files_ahead(&((const tfrecord_source *)base)->files, number, step);
}

static bel_status *tfrecord_check(const bel_source *base, int64_t block)
{
    return bel_record_files_check(&((const tfrecord_source *)base)->files, block);
}

static size_t missing_bytes(const bel_example_feature *feature)
{
    if (feature->missing == NULL) return 0;
    return feature->dtype == BEL_DTYPE_STRING ? strlen(feature->missing)
                                              : bel_dtype_size(feature->dtype);
}

static void tfrecord_describe(const bel_source *base, bel_str *out_text)
{
    const bel_tfrecord_options *options = ((const tfrecord_source *)base)->options;
    for (int i = 0; i < options->feature_count; i++) {
        const bel_example_feature *feature = &options->features[i];
        size_t size = missing_bytes(feature);
        bel_str_printf(out_text, " %s missing=%zu,%016llx", feature->key, size,
                       (unsigned long long)(size > 0 ? bel_hash64(feature->missing, size) : 0));
    }
}

static void tfrecord_destroy(bel_source *base)
{
    tfrecord_source *source = (tfrecord_source *)base;
    bel_record_files_close(&source->files);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind tfrecord_kind = {
    .name = "tfrecord",
    .check = tfrecord_check,
    .read = tfrecord_read,
    .ahead = tfrecord_ahead,
    .origin = tfrecord_origin,
    .describe = tfrecord_describe,
    .destroy = tfrecord_destroy,
};

static bel_status *open_files(tfrecord_source *source, const bel_opening *opening)
{
    const bel_tfrecord_options *options = source->options;
    BEL_TRY(bel_record_files_open(&source->files, source->arena, options->paths,
                                  options->path_count, index_records, &source->base));
    if (source->base.record_count > 0) return bel_source_read_some(&source->base, opening);
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected records, got none", source->files.items[0].path);
}

bel_status *bel_source_open_tfrecord(const bel_tfrecord_options *options,
                                     const bel_opening *opening, bel_source **out_source)
{
    tfrecord_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->options = options;
    int count = options->feature_count;
    bel_source_field *fields =
        bel_arena_alloc(source->arena, (size_t)(count > 0 ? count : 1) * sizeof *fields);
    fields[0] = (bel_source_field){
        .name = BEL_RECORD_FIELD, .dtype = BEL_DTYPE_STRING, .shape = BEL_SHAPE(-1)};
    for (int i = 0; i < count; i++) {
        const bel_example_feature *feature = &options->features[i];
        fields[i] = (bel_source_field){
            .name = feature->field, .dtype = feature->dtype, .shape = feature->shape};
    }
    source->base.kind = &tfrecord_kind;
    source->base.fields = fields;
    source->base.field_count = count > 0 ? count : 1;
    bel_status *status = open_files(source, opening);
    if (status != NULL) {
        tfrecord_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
