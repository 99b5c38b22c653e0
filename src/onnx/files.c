// The model names the files beside it, so a name is not trusted: it must be a relative path without
// "..", of a regular file. (A link in the folder may lead elsewhere: model caches consist of such
// links, and a process that can create one can also create the file.)
#include "onnx/files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/mapping.h"
#include "base/str.h"

enum { LONGEST_LOCATION = 1024, MOST_FILES = 1 << 12 };

typedef struct side_file {
    char *location;
    bel_mapping mapping;
} side_file;

struct bel_onnx_files {
    char *folder;
    bel_mapping model;
    side_file *sides;
    size_t side_count, side_capacity;
};

bel_status *bel_onnx_files_open(const char *path, bel_onnx_files **out_files)
{
    bel_mapping model;
    BEL_TRY(bel_mapping_open(path, &model));
    const char *slash = strrchr(path, '/');
    bel_onnx_files *files = bel_xcalloc(1, sizeof *files);
    files->model = model;
    files->folder =
        slash == NULL ? bel_xstrdup(".") : bel_strf("%.*s", (int)(slash - path + 1), path);
    *out_files = files;
    return NULL;
}

void bel_onnx_files_close(bel_onnx_files *files)
{
    if (files == NULL) return;
    for (size_t i = 0; i < files->side_count; i++) {
        bel_mapping_close(&files->sides[i].mapping);
        bel_free(files->sides[i].location);
    }
    bel_mapping_close(&files->model);
    bel_free(files->sides);
    bel_free(files->folder);
    bel_free(files);
}

bel_onnx_bytes bel_onnx_files_model(const bel_onnx_files *files)
{
    return (bel_onnx_bytes){files->model.data, files->model.size};
}

size_t bel_onnx_files_side_count(const bel_onnx_files *files)
{
    return files->side_count;
}

static bool files_holds(const bel_mapping *mapping, const char *address)
{
    return mapping->data != NULL && address >= mapping->data &&
           address < mapping->data + mapping->size;
}

bool bel_onnx_files_hold(const bel_onnx_files *files, const void *address)
{
    bool held = files_holds(&files->model, address);
    for (size_t i = 0; i < files->side_count; i++)
        held = held || files_holds(&files->sides[i].mapping, address);
    return held;
}

// --- Beside the model ----------------------------------------------------------------------------

static bool stays_inside(const char *location)
{
    size_t length = strlen(location);
    if (length == 0 || length > LONGEST_LOCATION || location[0] == '/') return false;
    for (const char *part = location; *part != '\0';) {
        size_t size = strcspn(part, "/");
        if (size == 2 && part[0] == '.' && part[1] == '.') return false;
        part += size;
        part += *part == '/';
    }
    return true;
}

static bel_status *find_side(bel_onnx_files *files, const char *location, bel_mapping *out_mapping)
{
    for (size_t i = 0; i < files->side_count; i++) {
        if (strcmp(files->sides[i].location, location) != 0) continue;
        *out_mapping = files->sides[i].mapping;
        return NULL;
    }
    if (files->side_count == MOST_FILES) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "a model of more than %d files", MOST_FILES);
    }
    side_file side;
    char *path = bel_path_join(files->folder, location);
    bel_status *status = bel_mapping_open(path, &side.mapping);
    bel_free(path);
    BEL_TRY(status);
    side.location = bel_xstrdup(location);
    files->sides =
        bel_xgrow(files->sides, &files->side_capacity, files->side_count + 1, sizeof side);
    files->sides[files->side_count++] = side;
    *out_mapping = side.mapping;
    return NULL;
}

bel_status *bel_onnx_files_find(bel_onnx_files *files, const char *location, int64_t offset,
                                int64_t length, bel_onnx_bytes *out_bytes)
{
    bel_mapping mapping = {.data = NULL};
    if (!stays_inside(location)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "its elements are in \"%.80s\", expected a relative path inside the model's "
                       "folder",
                       location);
    }
    BEL_TRY(find_side(files, location, &mapping));
    bool fits = offset >= 0 && length >= 0 && (uint64_t)offset <= mapping.size &&
                (uint64_t)length <= mapping.size - (uint64_t)offset;
    if (!fits) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "its elements are %lld bytes from %lld on of \"%.80s\", which has %zu bytes",
                       (long long)length, (long long)offset, location, mapping.size);
    }
    *out_bytes = (bel_onnx_bytes){length == 0 ? NULL : mapping.data + offset, (size_t)length};
    return NULL;
}

// --- Large elements in the model's own file ------------------------------------------------------

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW_DATA = 9 };

// One field of a message: the whole field, and its content if that is bytes.
typedef struct field {
    uint64_t number;
    bool is_bytes;
    bel_onnx_bytes whole, content;
} field;

static bool read_varint(bel_onnx_bytes *left, uint64_t *out_value)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && left->size > 0; shift += 7) {
        unsigned char byte = (unsigned char)*left->data;
        left->data++;
        left->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

// Removes the first field; false if no complete field is left.
static bool read_field(bel_onnx_bytes *left, field *out)
{
    enum { VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 5 };
    field f = {.whole = {left->data, 0}};
    uint64_t key, size = 0, ignored;
    if (!read_varint(left, &key)) return false;
    switch (key & 7) {
    case VARINT:
        if (!read_varint(left, &ignored)) return false;
        break;
    case EIGHT_BYTES: size = 8; break;
    case FOUR_BYTES: size = 4; break;
    case BYTES:
        if (!read_varint(left, &size)) return false;
        f.is_bytes = true;
        break;
    default: return false;
    }
    if (size > left->size) return false;
    f.number = key >> 3;
    f.content = (bel_onnx_bytes){left->data, (size_t)size};
    left->data += size;
    left->size -= (size_t)size;
    f.whole.size = (size_t)(left->data - f.whole.data);
    *out = f;
    return true;
}

static void put_varint(bel_str *out, uint64_t value)
{
    do {
        char byte = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        bel_str_append(out, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_bytes(bel_str *out, uint64_t number, const bel_str *content)
{
    put_varint(out, number << 3 | 2);
    put_varint(out, content->length);
    if (content->length > 0) bel_str_append(out, content->text, content->length);
}

// Copies a tensor without its raw data, if these are large and occur once.
static bool spare_tensor(bel_onnx_bytes tensor, bel_str *out, bel_onnx_bytes *out_raw)
{
    field f;
    int count = 0;
    bel_onnx_bytes raw = {.data = NULL};
    for (bel_onnx_bytes left = tensor; left.size > 0;) {
        if (!read_field(&left, &f)) return false;
        if (f.number != TENSOR_RAW_DATA) continue;
        count++;
        if (f.is_bytes && f.content.size >= BEL_ONNX_LARGE_BYTES) raw = f.content;
    }
    if (count != 1) raw = (bel_onnx_bytes){.data = NULL};
    for (bel_onnx_bytes left = tensor; left.size > 0 && read_field(&left, &f);) {
        bool left_out = raw.data != NULL && f.number == TENSOR_RAW_DATA;
        if (!left_out) bel_str_append(out, f.whole.data, f.whole.size);
    }
    *out_raw = raw;
    return true;
}

typedef struct raw_list {
    bel_onnx_bytes *items;
    size_t count, capacity;
} raw_list;

static bool spare_graph(bel_onnx_bytes graph, bel_str *out, raw_list *raws)
{
    field f;
    while (graph.size > 0) {
        if (!read_field(&graph, &f)) return false;
        if (f.number != GRAPH_INITIALIZER || !f.is_bytes) {
            bel_str_append(out, f.whole.data, f.whole.size);
            continue;
        }
        bel_str tensor = {.text = NULL};
        raws->items = bel_xgrow(raws->items, &raws->capacity, raws->count + 1, sizeof *raws->items);
        bool fine = spare_tensor(f.content, &tensor, &raws->items[raws->count++]);
        if (fine) put_bytes(out, GRAPH_INITIALIZER, &tensor);
        bel_str_deinit(&tensor);
        if (!fine) return false;
    }
    return true;
}

static bool spare_model(bel_onnx_bytes model, bel_str *out, raw_list *raws)
{
    field f;
    while (model.size > 0) {
        if (!read_field(&model, &f)) return false;
        if (f.number != MODEL_GRAPH || !f.is_bytes) {
            bel_str_append(out, f.whole.data, f.whole.size);
            continue;
        }
        bel_str graph = {.text = NULL};
        bool fine = spare_graph(f.content, &graph, raws);
        if (fine) put_bytes(out, MODEL_GRAPH, &graph);
        bel_str_deinit(&graph);
        if (!fine) return false;
    }
    return true;
}

bool bel_onnx_spare(bel_onnx_bytes model, bel_str *out_message, bel_onnx_bytes **out_raw,
                    size_t *out_raw_count)
{
    raw_list raws = {.items = NULL};
    bel_str message = {.text = NULL};
    if (!spare_model(model, &message, &raws)) {
        bel_str_deinit(&message);
        bel_free(raws.items);
        return false;
    }
    *out_message = message;
    *out_raw = raws.items;
    *out_raw_count = raws.count;
    return true;
}
