// IDX, the format of MNIST: two zero bytes, the element type (0x08: unsigned bytes), the number
// of dimensions, the dimensions as big-endian 32-bit numbers, then the elements, row-major. Only
// unsigned bytes are read. A record of any dimensions becomes one vector.
//
// The product of the dimensions must equal the size of the elements to the byte. It is computed
// with overflow checks, so a read needs no bounds checks. A table of 256 numbers, computed once in
// double with the scale, converts each byte. Opening checks the labels and hashes the whole
// content. Images of a large object are read while it is copied: then its tag stands for the bytes,
// and no more than the header is read before the first record.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/files/fetch_ahead.h"
#include "input/files/file_view.h"
#include "input/files/paths.h"
#include "input/source/source.h"
#include "store/copy.h"

enum { IDX_UNSIGNED_BYTE = 0x08, IDX_MAX_RANK = 4, BYTE_VALUES = 256 };

typedef struct idx_file {
    const char *path;
    bel_file_view view;
    int64_t count;      // records
    int64_t item_bytes; // elements of a record
    const unsigned char *items;
} idx_file;

typedef struct idx_source {
    bel_source base;
    bel_arena *arena; // memory of names
    idx_file images;
    idx_file labels; // zeroed without labels
    int64_t class_count;
    double scale;
    float values[BYTE_VALUES]; // number for each byte
    bel_source_field fields[2];
} idx_source;

// --- Files ---------------------------------------------------------------------------------------

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bel_status *check_magic(const idx_file *file, const unsigned char *bytes)
{
    size_t size = file->view.size;
    if (size < 4) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected an IDX header, got a file of %zu bytes",
                       file->path, size);
    }
    if (bytes[0] != 0 || bytes[1] != 0) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: not an IDX file: expected it to begin with 00 00, got %02x %02x",
                       file->path, bytes[0], bytes[1]);
    }
    if (bytes[2] != IDX_UNSIGNED_BYTE) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected unsigned bytes (IDX type 08), got type %02x",
                       file->path, bytes[2]);
    }
    if (bytes[3] < 1 || bytes[3] > IDX_MAX_RANK) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected 1 to %d dimensions, got %d", file->path,
                       IDX_MAX_RANK, bytes[3]);
    }
    if (size < 4 + 4 * (size_t)bytes[3]) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected an IDX header of %d bytes, got a file of %zu",
                       file->path, 4 + 4 * bytes[3], size);
    }
    return NULL;
}

// The elements follow the magic and the dimensions, 4 bytes each. They must fill the rest of the
// file to the byte.
static bel_status *read_header(idx_file *file)
{
    const unsigned char *bytes = (const unsigned char *)file->view.data;
    BEL_TRY(check_magic(file, bytes));
    int rank = bytes[3];
    file->count = big_endian(bytes + 4);
    file->item_bytes = 1;
    bool fits = true;
    for (int i = 1; i < rank; i++) {
        int64_t dim = big_endian(bytes + 4 + 4 * i);
        fits = fits && !__builtin_mul_overflow(file->item_bytes, dim, &file->item_bytes);
    }
    size_t header = 4 + 4 * (size_t)rank;
    int64_t expected;
    fits = fits && !__builtin_mul_overflow(file->count, file->item_bytes, &expected);
    if (!fits) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: its header promises more than 2^63 bytes", file->path);
    }
    if ((uint64_t)expected != file->view.size - header) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected %lld records of %lld bytes after a header of %zu bytes, in "
                       "all %llu bytes; got %zu",
                       file->path, (long long)file->count, (long long)file->item_bytes, header,
                       (unsigned long long)expected + header, file->view.size);
    }
    file->items = bytes + header;
    return NULL;
}

// The file has its path.
static bel_status *open_file(idx_file *file, bool partial)
{
    enum { HEADER_MOST = 4 + 4 * IDX_MAX_RANK };
    BEL_TRY((partial ? bel_file_view_open_partial : bel_file_view_open)(file->path, &file->view));
    BEL_TRY(bel_file_view_need(&file->view, 0, HEADER_MOST));
    return read_header(file);
}

static bel_status *check_labels(const idx_source *source)
{
    const idx_file *labels = &source->labels;
    if (labels->item_bytes != 1 || ((const unsigned char *)labels->view.data)[3] != 1) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected labels of 1 dimension, got %d", labels->path,
                       labels->view.data[3]);
    }
    if (labels->count != source->images.count) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %lld labels for the images of %s, got %lld",
                       labels->path, (long long)source->images.count, source->images.path,
                       (long long)labels->count);
    }
    for (int64_t i = 0; source->class_count > 0 && i < labels->count; i++) {
        if (labels->items[i] < source->class_count) continue;
        return BEL_ERR(BEL_DATA_LOSS, "%s: record %lld: expected a label in 0..%lld, got %d",
                       labels->path, (long long)i, (long long)source->class_count - 1,
                       labels->items[i]);
    }
    return NULL;
}

// --- The source ----------------------------------------------------------------------------------

static uint64_t image_offset(const idx_source *source, int64_t number)
{
    const unsigned char *first = (const unsigned char *)source->images.view.data;
    return (uint64_t)(source->images.items - first) +
           (uint64_t)number * (uint64_t)source->images.item_bytes;
}

static void idx_want(const bel_source *base, struct bel_cursor *cursor, bel_position at)
{
    (void)cursor;
    const idx_source *source = (const idx_source *)base;
    bel_file_view_want(&source->images.view, image_offset(source, at.number),
                       (uint64_t)source->images.item_bytes);
}

// Field 0 is x [item_bytes], converted by the table; field 1 is the label, if present.
static bel_status *idx_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const idx_source *source = (const idx_source *)base;
    int64_t size = source->images.item_bytes;
    const unsigned char *bytes = source->images.items + number * size;
    BEL_TRY(bel_file_view_need(&source->images.view, image_offset(source, number), (uint64_t)size));
    float *x = bel_sink_place(sink, base, 0, 0);
    for (int64_t i = 0; i < size; i++)
        x[i] = source->values[bytes[i]];
    if (base->field_count == 1) return NULL;
    int64_t *label = bel_sink_place(sink, base, 1, 0);
    *label = source->labels.items[number];
    return NULL;
}

static void idx_ahead(const bel_source *base, int64_t number, int step)
{
    const idx_source *source = (const idx_source *)base;
    size_t size = (size_t)source->images.item_bytes;
    if (step + 1 < BEL_AHEAD_STEPS) return; // a record's place is known without a list
    bel_ahead_fetch(source->images.items + (size_t)number * size, size);
    if (base->field_count > 1) bel_ahead_fetch(source->labels.items + number, 1);
}

static void idx_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const idx_source *source = (const idx_source *)base;
    bel_str_printf(out_text, "%s: record %lld", source->images.path, (long long)number);
}

static void idx_describe(const bel_source *base, bel_str *out_text)
{
    const idx_source *source = (const idx_source *)base;
    bel_str_printf(out_text, "scale=%a classes=%lld", source->scale,
                   (long long)source->class_count);
}

static bel_status *idx_check(const bel_source *base, int64_t block)
{
    (void)block;
    const idx_source *source = (const idx_source *)base;
    BEL_TRY(bel_file_view_check(&source->images.view, source->images.path));
    return bel_file_view_check(&source->labels.view, source->labels.path);
}

static bel_status *idx_finish(const bel_source *base, int64_t deadline_ns, bool *out_compared)
{
    return bel_file_view_finish(&((const idx_source *)base)->images.view, deadline_ns,
                                out_compared);
}

static void idx_destroy(bel_source *base)
{
    idx_source *source = (idx_source *)base;
    bel_file_view_close(&source->images.view);
    bel_file_view_close(&source->labels.view);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind idx_kind = {
    .name = "idx",
    .check = idx_check,
    .finish = idx_finish,
    .read = idx_read,
    .ahead = idx_ahead,
    .want = idx_want,
    .origin = idx_origin,
    .describe = idx_describe,
    .destroy = idx_destroy,
};

static bel_status *open_files(idx_source *source, const bel_idx_description *description)
{
    idx_file *images = &source->images, *labels = &source->labels;
    BEL_TRY(bel_path_expand_one(source->arena, description->images_path, &images->path));
    if (description->labels_path != NULL)
        BEL_TRY(bel_path_expand_one(source->arena, description->labels_path, &labels->path));
    bool remote = labels->path != NULL && bel_store_is_url(labels->path);
    if (remote) bel_store_copy_begin(labels->path); // while the images are opened
    BEL_TRY(open_file(images, true));
    if (labels->path == NULL) return NULL;
    BEL_TRY(open_file(labels, false));
    return check_labels(source);
}

bel_status *bel_source_open_idx(const bel_idx_description *description, bel_source **out_source)
{
    idx_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->class_count = description->class_count;
    source->scale = description->scale;
    bel_status *status = open_files(source, description);
    if (status != NULL) {
        idx_destroy(&source->base);
        return status;
    }
    for (int i = 0; i < BYTE_VALUES; i++)
        source->values[i] = (float)(i * description->scale);
    source->fields[0] = (bel_source_field){
        .name = "x",
        .dtype = BEL_DTYPE_F32,
        .shape = BEL_SHAPE(source->images.item_bytes),
        .scale = description->scale,
    };
    source->fields[1] = (bel_source_field){
        .name = BEL_LABEL_FIELD,
        .dtype = BEL_DTYPE_I64,
        .shape = bel_shape_scalar(),
    };
    uint64_t content = bel_file_view_content(&source->images.view, 0);
    source->base = (bel_source){
        .kind = &idx_kind,
        .content = bel_file_view_content(&source->labels.view, content),
        .record_count = source->images.count,
        .may_lack = source->images.view.partial != NULL,
        .size_bytes = source->images.view.size + source->labels.view.size,
        .fields = source->fields,
        .field_count = description->labels_path == NULL ? 1 : 2,
    };
    *out_source = &source->base;
    return NULL;
}
