// Parser of the manifest, through base/json.h, with every value checked. The checksum at its end is
// checked first. The checks after it are for files made or changed by hand, so sums are guarded
// against overflow and file names cannot leave the folder.
//
// Users of the result check nothing again: they rely on ascending names (bisection) and on pieces
// that cover each tensor without a gap.
#include "checkpoint/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

static const char seal_head[] = BEL_MANIFEST_SEAL_HEAD, seal_tail[] = BEL_MANIFEST_SEAL_TAIL;
enum { CRC_DIGITS = 8, SEAL_BYTES = sizeof seal_head - 1 + CRC_DIGITS + sizeof seal_tail - 1 };

typedef struct manifest_parser {
    const char *source;
    bel_arena *arena;
    bel_manifest *manifest;
    int setting_capacity;
    const char **setting_names, **setting_values;
} manifest_parser;

static bel_status *malformed_entry(const manifest_parser *parser, const char *where,
                                   const char *member, const char *expected)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: %s: \"%s\": expected %s", parser->source, where, member,
                   expected);
}

static bel_status *get_text(const manifest_parser *parser, const bel_json_value *object,
                            const char *where, const char *member, const char **out_text)
{
    if (bel_json_string(object, member, out_text)) return NULL;
    return malformed_entry(parser, where, member, "a text");
}

static bel_status *get_number(const manifest_parser *parser, const bel_json_value *object,
                              const char *where, const char *member, int64_t min,
                              int64_t *out_number)
{
    int64_t number;
    if (!bel_json_i64(object, member, &number)) {
        return malformed_entry(parser, where, member, "an integer");
    }
    if (number < min) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: %s: \"%s\": expected at least %lld, got %lld",
                       parser->source, where, member, (long long)min, (long long)number);
    }
    *out_number = number;
    return NULL;
}

// Parses `digits` lower-case hex digits, at most 16.
static bool parse_hex(const char *text, int digits, uint64_t *out_value)
{
    uint64_t value = 0;
    for (int i = 0; i < digits; i++) {
        char digit = text[i];
        if (digit >= '0' && digit <= '9') {
            value = value << 4 | (uint64_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            value = value << 4 | (uint64_t)(digit - 'a' + 10);
        } else {
            return false; // includes the zero byte of a text that is too short
        }
    }
    *out_value = value;
    return true;
}

static bool parse_u64(const char *text, uint64_t *out_value)
{
    uint64_t value = 0;
    if (text[0] == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        if (__builtin_mul_overflow(value, 10u, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) return false;
    }
    *out_value = value;
    return true;
}

static bel_status *get_digest(const manifest_parser *parser, const bel_json_value *object,
                              const char *where, bel_hash128 *out_digest)
{
    const char *text;
    BEL_TRY(get_text(parser, object, where, "digest", &text));
    if (strlen(text) == 32 && parse_hex(text, 16, &out_digest->high) &&
        parse_hex(text + 16, 16, &out_digest->low))
        return NULL;
    return malformed_entry(parser, where, "digest", "32 lower-case hex digits");
}

// Parses the base of a delta, which is an earlier checkpoint.
static bel_status *parse_base(const manifest_parser *parser, const bel_json_value *root)
{
    bel_ckpt_info *info = &parser->manifest->info;
    const bel_json_value *base = bel_json_member(root, "base");
    if (base == NULL) return malformed_entry(parser, "manifest", "base", "a step and a digest");
    BEL_TRY(get_number(parser, base, "base", "step", 1, &info->base.step));
    if (info->base.step >= info->step)
        return malformed_entry(parser, "base", "step", "an earlier step than the checkpoint's");
    return get_digest(parser, base, "base", &info->base.digest);
}

static bel_status *parse_head(const manifest_parser *parser, const bel_json_value *root)
{
    bel_ckpt_info *info = &parser->manifest->info;
    const char *text;
    BEL_TRY(get_number(parser, root, "manifest", "step", 0, &info->step));
    BEL_TRY(get_number(parser, root, "manifest", "generation", 0, &info->generation));
    BEL_TRY(get_text(parser, root, "manifest", "seed", &text));
    if (!parse_u64(text, &info->seed)) {
        return malformed_entry(parser, "manifest", "seed",
                               "a decimal number below 2^64, as a text");
    }
    return get_digest(parser, root, "manifest", &parser->manifest->digest);
}

// A manifest of an earlier version lacks batch sizes.
static bel_status *parse_batch(const manifest_parser *parser, const bel_json_value *value,
                               bel_input_segment *segment)
{
    segment->batch_size = segment->origin = 0;
    if (bel_json_member(value, "batch_size") == NULL) return NULL;
    BEL_TRY(get_number(parser, value, "segment", "batch_size", 1, &segment->batch_size));
    BEL_TRY(get_number(parser, value, "segment", "origin", 0, &segment->origin));
    if (segment->origin < segment->batch_size) return NULL;
    return malformed_entry(parser, "segment", "origin", "a number below batch_size");
}

static bel_status *parse_segments(const manifest_parser *parser, const bel_json_value *root)
{
    const bel_json_value *list = bel_json_member(root, "segments");
    size_t count = bel_json_length(list);
    bel_input_segment *segments = bel_arena_alloc(parser->arena, count * sizeof *segments);
    if (list == NULL) return malformed_entry(parser, "manifest", "segments", "a list");
    for (size_t i = 0; i < count; i++) {
        const bel_json_value *value = bel_json_at(list, i);
        int64_t min_step = i > 0 ? segments[i - 1].first_step : 0;
        BEL_TRY(
            get_number(parser, value, "segment", "first_step", min_step, &segments[i].first_step));
        BEL_TRY(get_number(parser, value, "segment", "first_block", 0, &segments[i].first_block));
        BEL_TRY(
            get_number(parser, value, "segment", "replica_count", 1, &segments[i].replica_count));
        BEL_TRY(parse_batch(parser, value, &segments[i]));
    }
    parser->manifest->info.segments = segments;
    parser->manifest->info.segment_count = (int)count;
    return NULL;
}

static bel_status *count_setting(void *context, const char *name, const bel_json_value *value)
{
    manifest_parser *parser = context;
    if (bel_json_value_string(value) == NULL)
        return malformed_entry(parser, "setting", name, "a text");
    parser->setting_capacity++;
    return NULL;
}

static bel_status *visit_setting(void *context, const char *name, const bel_json_value *value)
{
    manifest_parser *parser = context;
    int index = parser->manifest->info.setting_count++;
    parser->setting_names[index] = bel_arena_strdup(parser->arena, name);
    parser->setting_values[index] = bel_arena_strdup(parser->arena, bel_json_value_string(value));
    return NULL;
}

static bel_status *parse_settings(manifest_parser *parser, const bel_json_value *root)
{
    const bel_json_value *settings = bel_json_member(root, "settings");
    if (settings == NULL) return malformed_entry(parser, "manifest", "settings", "an object");
    BEL_TRY(bel_json_each(settings, count_setting, parser));
    size_t bytes = (size_t)parser->setting_capacity * sizeof *parser->setting_names;
    parser->setting_names = bel_arena_alloc(parser->arena, bytes);
    parser->setting_values = bel_arena_alloc(parser->arena, bytes);
    parser->manifest->info.setting_names = parser->setting_names;
    parser->manifest->info.setting_values = parser->setting_values;
    return bel_json_each(settings, visit_setting, parser);
}

static bel_status *parse_file(const manifest_parser *parser, const bel_json_value *value,
                              const char *name_before, bel_manifest_file *out_file)
{
    const char *name, *crc_text;
    int64_t size = 0;
    uint64_t crc;
    BEL_TRY(get_text(parser, value, "file", "name", &name));
    // A plain name: the manifest never leads out of its folder.
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return malformed_entry(parser, "file", name, "a plain file name");
    }
    if (name_before != NULL && strcmp(name_before, name) >= 0) {
        return malformed_entry(parser, "file", name, "names in ascending order, none twice");
    }
    BEL_TRY(get_number(parser, value, name, "size", 0, &size));
    BEL_TRY(get_text(parser, value, name, "crc32c", &crc_text));
    if (strlen(crc_text) != CRC_DIGITS || !parse_hex(crc_text, CRC_DIGITS, &crc)) {
        return malformed_entry(parser, name, "crc32c", "8 lower-case hex digits");
    }
    *out_file = (bel_manifest_file){
        .name = bel_arena_strdup(parser->arena, name),
        .size_bytes = (uint64_t)size,
        .crc32c = (uint32_t)crc,
    };
    return NULL;
}

static bel_status *parse_files(const manifest_parser *parser, const bel_json_value *root)
{
    const bel_json_value *list = bel_json_member(root, "files");
    size_t count = bel_json_length(list);
    bel_manifest_file *files = bel_arena_alloc(parser->arena, count * sizeof *files);
    if (list == NULL) return malformed_entry(parser, "manifest", "files", "a list");
    for (size_t i = 0; i < count; i++) {
        const char *name_before = i > 0 ? files[i - 1].name : NULL;
        BEL_TRY(parse_file(parser, bel_json_at(list, i), name_before, &files[i]));
    }
    parser->manifest->files = files;
    parser->manifest->file_count = (int)count;
    return NULL;
}

static bel_status *parse_shape(const manifest_parser *parser, const bel_json_value *value,
                               bel_manifest_tensor *tensor)
{
    const bel_json_value *dims = bel_json_member(value, "shape");
    size_t rank = bel_json_length(dims);
    if (dims == NULL || rank > BEL_MAX_RANK) {
        return malformed_entry(parser, tensor->name, "shape", "a list of at most 8 dimensions");
    }
    tensor->shape.rank = (int32_t)rank;
    int64_t bytes = (int64_t)bel_dtype_size(tensor->dtype);
    for (size_t i = 0; i < rank; i++) {
        int64_t dim;
        if (!bel_json_value_i64(bel_json_at(dims, i), &dim) || dim < 0) {
            return malformed_entry(parser, tensor->name, "shape", "integers from 0 up");
        }
        if (__builtin_mul_overflow(bytes, dim, &bytes)) {
            return malformed_entry(parser, tensor->name, "shape",
                                   "a tensor of less than 2^63 bytes");
        }
        tensor->shape.dims[i] = dim;
    }
    return NULL;
}

// Parses pieces, [file, first, count] each. They must follow one another and cover the tensor.
static bel_status *parse_pieces(const manifest_parser *parser, const bel_json_value *value,
                                bel_manifest_tensor *tensor)
{
    const bel_json_value *list = bel_json_member(value, "pieces");
    size_t count = bel_json_length(list);
    int64_t elements = bel_shape_elements(&tensor->shape), next = 0;
    tensor->pieces = bel_arena_alloc(parser->arena, count * sizeof *tensor->pieces);
    tensor->piece_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const bel_json_value *numbers = bel_json_at(list, i);
        bel_manifest_piece *piece = &tensor->pieces[i];
        int64_t file;
        if (bel_json_length(numbers) != 3 || !bel_json_value_i64(bel_json_at(numbers, 0), &file) ||
            !bel_json_value_i64(bel_json_at(numbers, 1), &piece->first) ||
            !bel_json_value_i64(bel_json_at(numbers, 2), &piece->count)) {
            return malformed_entry(parser, tensor->name, "pieces", "three integers each");
        }
        if (file < 0 || file >= parser->manifest->file_count) {
            return malformed_entry(parser, tensor->name, "pieces",
                                   "the number of a file that is listed");
        }
        bool empty = piece->count <= 0 && !(elements == 0 && piece->count == 0 && count == 1);
        if (piece->first != next || empty || piece->count > elements - next ||
            piece->first % BEL_GRAIN != 0) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: %s: piece %zu: expected some of the %lld elements from "
                           "%lld on, cut at a multiple of %d, got %lld from %lld",
                           parser->source, tensor->name, i, (long long)elements, (long long)next,
                           BEL_GRAIN, (long long)piece->count, (long long)piece->first);
        }
        piece->file_index = (int)file;
        next += piece->count;
    }
    if (next != elements || count == 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: %s: expected pieces with all %lld elements, got %lld",
                       parser->source, tensor->name, (long long)elements, (long long)next);
    }
    return NULL;
}

static bel_status *parse_tensor(const manifest_parser *parser, const bel_json_value *value,
                                const char *name_before, bel_manifest_tensor *tensor)
{
    const char *name, *dtype;
    BEL_TRY(get_text(parser, value, "tensor", "name", &name));
    if (name[0] == '\0' || strchr(name, '#') != NULL) {
        return malformed_entry(parser, "tensor", name, "a name without \"#\"");
    }
    if (name_before != NULL && strcmp(name_before, name) >= 0) {
        return malformed_entry(parser, "tensor", name, "names in ascending order, none twice");
    }
    tensor->name = bel_arena_strdup(parser->arena, name);
    BEL_TRY(get_text(parser, value, name, "dtype", &dtype));
    int code = BEL_DTYPE_F32;
    while (code < BEL_DTYPE_STRING && strcmp(dtype, bel_dtype_name((bel_dtype)code)) != 0)
        code++;
    if (code == BEL_DTYPE_STRING) {
        return malformed_entry(parser, name, "dtype", "f32, f64, i32, i64, u8 or bool");
    }
    tensor->dtype = (bel_dtype)code;
    BEL_TRY(parse_shape(parser, value, tensor));
    return parse_pieces(parser, value, tensor);
}

static bel_status *parse_tensors(const manifest_parser *parser, const bel_json_value *root)
{
    const bel_json_value *list = bel_json_member(root, "tensors");
    size_t count = bel_json_length(list);
    bel_manifest_tensor *tensors = bel_arena_alloc(parser->arena, count * sizeof *tensors);
    if (list == NULL) return malformed_entry(parser, "manifest", "tensors", "a list");
    for (size_t i = 0; i < count; i++) {
        const char *name_before = i > 0 ? tensors[i - 1].name : NULL;
        BEL_TRY(parse_tensor(parser, bel_json_at(list, i), name_before, &tensors[i]));
    }
    parser->manifest->tensors = tensors;
    parser->manifest->tensor_count = (int)count;
    return NULL;
}

static bel_status *parse_columns(const manifest_parser *parser, const bel_json_value *value,
                                 bel_ckpt_table *table)
{
    const bel_json_value *list = bel_json_member(value, "columns");
    size_t count = bel_json_length(list);
    if (list == NULL || count < 1 || count > BEL_CKPT_MAX_COLUMNS) {
        return malformed_entry(parser, table->name, "columns", "a list of 1 to 16 names");
    }
    const char **columns = bel_arena_alloc(parser->arena, count * sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        const char *name = bel_json_value_string(bel_json_at(list, i));
        bool good = name != NULL && name[0] != '\0' && strchr(name, '#') == NULL &&
                    strcmp(name, "keys") != 0 &&
                    (parser->manifest->info.base.step == 0 || strcmp(name, "removed") != 0);
        for (size_t j = 0; good && j < i; j++)
            good = strcmp(columns[j], name) != 0;
        if (!good) {
            return malformed_entry(parser, table->name, "columns",
                                   "names without \"#\", no duplicates and no \"keys\"");
        }
        columns[i] = bel_arena_strdup(parser->arena, name);
    }
    table->columns = columns;
    table->column_count = (int)count;
    return NULL;
}

// Most rows of a table: a column stays below 2^63 bytes.
static int64_t most_rows(const bel_manifest_table *table)
{
    return INT64_MAX / 16 / table->table.width;
}

// Parses a count for each file, of rows or of removed keys.
static bel_status *parse_counts(const manifest_parser *parser, const bel_json_value *value,
                                const char *member, const bel_manifest_table *table,
                                int64_t **out_counts, int64_t *out_sum)
{
    const bel_json_value *list = bel_json_member(value, member);
    size_t count = (size_t)parser->manifest->file_count;
    if (list == NULL || bel_json_length(list) != count) {
        return malformed_entry(parser, table->table.name, member, "a number for each file");
    }
    *out_counts = bel_arena_alloc(parser->arena, count * sizeof **out_counts);
    *out_sum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t *rows = &(*out_counts)[i];
        if (!bel_json_value_i64(bel_json_at(list, i), rows) || *rows < 0 ||
            *rows > most_rows(table) - *out_sum) {
            return malformed_entry(parser, table->table.name, member,
                                   "integers from 0 up, of less than 2^63 bytes together");
        }
        *out_sum += *rows;
    }
    return NULL;
}

// Parses the rows of each file, and for a delta the removed keys and the number of all rows.
static bel_status *parse_rows(const manifest_parser *parser, const bel_json_value *value,
                              bel_manifest_table *table)
{
    int64_t removed;
    BEL_TRY(parse_counts(parser, value, "rows", table, &table->rows, &table->all));
    if (parser->manifest->info.base.step == 0) return NULL;
    BEL_TRY(parse_counts(parser, value, "removed", table, &table->removed, &removed));
    BEL_TRY(get_number(parser, value, table->table.name, "all", 0, &table->all));
    if (table->all <= most_rows(table)) return NULL;
    return malformed_entry(parser, table->table.name, "all", "rows of less than 2^63 bytes");
}

static int by_name(const void *a, const void *b)
{
    const bel_manifest_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

// Bisects the tensors' ascending names.
static bool is_tensor(const bel_manifest *manifest, const char *name)
{
    bel_manifest_tensor key = {.name = name};
    size_t count = (size_t)manifest->tensor_count;
    return count > 0 && bsearch(&key, manifest->tensors, count, sizeof key, by_name) != NULL;
}

static bel_status *parse_table(const manifest_parser *parser, const bel_json_value *value,
                               const char *name_before, bel_manifest_table *table)
{
    const char *name;
    int64_t width = 0;
    BEL_TRY(get_text(parser, value, "table", "name", &name));
    if (name[0] == '\0' || strchr(name, '#') != NULL || is_tensor(parser->manifest, name)) {
        return malformed_entry(parser, "table", name, "a name without \"#\" that no tensor has");
    }
    if (name_before != NULL && strcmp(name_before, name) >= 0) {
        return malformed_entry(parser, "table", name, "names in ascending order, none twice");
    }
    BEL_TRY(get_number(parser, value, name, "width", 1, &width));
    if (width > BEL_CKPT_MAX_WIDTH)
        return malformed_entry(parser, name, "width", "at most 1048576");
    table->table.name = bel_arena_strdup(parser->arena, name);
    table->table.width = (int)width;
    BEL_TRY(parse_columns(parser, value, &table->table));
    return parse_rows(parser, value, table);
}

static bel_status *parse_tables(const manifest_parser *parser, const bel_json_value *root)
{
    const bel_json_value *list = bel_json_member(root, "tables");
    size_t count = bel_json_length(list);
    bel_manifest_table *tables = bel_arena_alloc(parser->arena, count * sizeof *tables);
    if (list == NULL) return malformed_entry(parser, "manifest", "tables", "a list");
    for (size_t i = 0; i < count; i++) {
        const char *name_before = i > 0 ? tables[i - 1].table.name : NULL;
        BEL_TRY(parse_table(parser, bel_json_at(list, i), name_before, &tables[i]));
    }
    parser->manifest->tables = tables;
    parser->manifest->table_count = (int)count;
    return NULL;
}

// Checks the checksum, before any other value is used.
static bel_status *check_seal(const char *text, size_t length, const char *source)
{
    size_t sealed = length < SEAL_BYTES ? 0 : length - SEAL_BYTES;
    const char *digits = text + sealed + sizeof seal_head - 1;
    uint64_t expected;
    if (length < SEAL_BYTES || memcmp(text + sealed, seal_head, sizeof seal_head - 1) != 0 ||
        !parse_hex(digits, CRC_DIGITS, &expected) ||
        memcmp(digits + CRC_DIGITS, seal_tail, sizeof seal_tail - 1) != 0) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected a checksum at the end: the file is torn, or not "
                       "a manifest",
                       source);
    }
    uint32_t got = bel_crc32c(0, text, sealed);
    if (got != expected) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: corrupt: its CRC-32C should be %08x, is %08x", source,
                       (unsigned)expected, got);
    }
    return NULL;
}

static bel_status *parse_root(manifest_parser *parser, const bel_json_value *root)
{
    const char *format;
    int64_t version = 0;
    BEL_TRY(get_text(parser, root, "manifest", "format", &format));
    if (strcmp(format, BEL_MANIFEST_FORMAT) != 0) {
        return malformed_entry(parser, "manifest", "format", BEL_MANIFEST_FORMAT);
    }
    BEL_TRY(get_number(parser, root, "manifest", "format_version", 1, &version));
    if (version > BEL_MANIFEST_VERSION) {
        return BEL_ERR(
            BEL_UNIMPLEMENTED,
            "%s: this Belfry reads checkpoints up to format %d, got format %lld: a later "
            "Belfry wrote it",
            parser->source, BEL_MANIFEST_VERSION, (long long)version);
    }
    BEL_TRY(parse_head(parser, root));
    if (version > BEL_MANIFEST_TABLE_VERSION) BEL_TRY(parse_base(parser, root));
    BEL_TRY(parse_segments(parser, root));
    BEL_TRY(parse_settings(parser, root));
    BEL_TRY(parse_files(parser, root));
    BEL_TRY(parse_tensors(parser, root));
    return version > BEL_MANIFEST_PLAIN_VERSION ? parse_tables(parser, root) : NULL;
}

bel_status *bel_manifest_parse(const char *text, size_t length, const char *source,
                               bel_arena *arena, bel_manifest *out_manifest)
{
    BEL_TRY(check_seal(text, length, source));
    bel_json *json;
    BEL_TRY(bel_json_parse(text, length, source, &json));
    bel_manifest manifest = {0};
    manifest_parser parser = {.source = source, .arena = arena, .manifest = &manifest};
    bel_status *status = parse_root(&parser, bel_json_root(json));
    bel_json_destroy(json);
    if (status == NULL) *out_manifest = manifest;
    return status;
}
