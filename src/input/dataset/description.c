// Deep copies into an arena: of the source when a dataset is made, of everything when it is opened.
// Everything to which a description points must be copied here, as callers pass compound literals
// that expire after the call. Functions, their `user` and the data of memory fields belong to the
// user, and their pointers are kept; objects that a dataset owns are reference-counted.
#include "input/dataset/description.h"

#include "base/alloc.h"
#include "input/files/paths.h"

static const char *copy_text(bel_arena *arena, const char *text)
{
    return text == NULL ? NULL : bel_arena_strdup(arena, text);
}

const char *const *bel_names_copy(bel_arena *arena, const char *const *names, size_t count)
{
    if (names == NULL) return NULL;
    const char **copy = bel_arena_alloc(arena, (count + 1) * sizeof *copy); // NULL after the last
    for (size_t i = 0; i < count; i++)
        copy[i] = copy_text(arena, names[i]);
    return copy;
}

size_t bel_name_list_length(const char *const *names)
{
    size_t count = 0;
    while (names != NULL && names[count] != NULL)
        count++;
    return count;
}

static void copy_csv(bel_arena *arena, const bel_csv_options *from, bel_csv_options *out_copy)
{
    bel_csv_options copy = *from;
    size_t name_count = from->column_names == NULL ? 0 : (size_t)from->column_name_count;
    size_t column_count = from->columns == NULL ? 0 : (size_t)from->column_count;
    copy.paths = bel_names_copy(arena, from->paths, (size_t)from->path_count);
    copy.column_names = bel_names_copy(arena, from->column_names, name_count);
    size_t id_count = from->id_columns == NULL ? 0 : (size_t)from->id_column_count;
    copy.id_columns = bel_names_copy(arena, from->id_columns, id_count);
    size_t list_count = from->id_list_columns == NULL ? 0 : (size_t)from->id_list_column_count;
    copy.id_list_columns = bel_names_copy(arena, from->id_list_columns, list_count);
    copy.length_column = copy_text(arena, from->length_column);
    copy.label_column = copy_text(arena, from->label_column);
    copy.vector_name = copy_text(arena, from->vector_name);
    bel_csv_column *columns = bel_arena_alloc(arena, (column_count + 1) * sizeof *columns);
    for (size_t i = 0; i < column_count; i++) {
        columns[i] = from->columns[i];
        columns[i].name = copy_text(arena, from->columns[i].name);
    }
    copy.columns = from->columns == NULL ? NULL : columns;
    *out_copy = copy;
}

static void copy_tfrecord(bel_arena *arena, const bel_tfrecord_options *from,
                          bel_tfrecord_options *out_copy)
{
    size_t count = from->features == NULL ? 0 : (size_t)from->feature_count;
    bel_example_feature *features = bel_arena_alloc(arena, count * sizeof *features);
    for (size_t i = 0; i < count; i++) {
        const bel_example_feature *feature = &from->features[i];
        features[i] = *feature;
        features[i].key = copy_text(arena, feature->key);
        features[i].field =
            copy_text(arena, feature->field == NULL ? feature->key : feature->field);
        if (feature->dtype == BEL_DTYPE_STRING) {
            features[i].shape = BEL_SHAPE(-1);
            features[i].missing = copy_text(arena, feature->missing);
        } else if (feature->missing != NULL) {
            features[i].missing =
                bel_arena_copy(arena, feature->missing, bel_dtype_size(feature->dtype));
        }
    }
    *out_copy = (bel_tfrecord_options){
        .paths = bel_names_copy(arena, from->paths, (size_t)from->path_count),
        .path_count = from->path_count,
        .features = features,
        .feature_count = (int)count,
    };
}

static void copy_memory(bel_arena *arena, const bel_memory_description *from,
                        bel_memory_description *out_copy)
{
    size_t count = (size_t)from->field_count;
    bel_memory_field *fields = bel_arena_alloc(arena, count * sizeof *fields);
    for (size_t i = 0; i < count; i++) {
        fields[i] = from->fields[i];
        fields[i].name = copy_text(arena, from->fields[i].name);
    }
    *out_copy = (bel_memory_description){.fields = fields, .field_count = from->field_count};
}

void bel_source_description_copy(bel_arena *arena, const bel_source_description *from,
                                 bel_source_description *out_copy)
{
    bel_source_description copy = *from;
    bel_description *inner = bel_arena_alloc(arena, (size_t)from->inner_count * sizeof *inner);
    for (int i = 0; i < from->inner_count; i++)
        bel_description_copy(arena, &from->inner[i], &inner[i]);
    copy.inner = inner;
    switch (from->kind) {
    case BEL_SOURCE_CSV: copy_csv(arena, &from->csv, &copy.csv); break;
    case BEL_SOURCE_IDX:
        copy.idx.images_path = copy_text(arena, from->idx.images_path);
        copy.idx.labels_path = copy_text(arena, from->idx.labels_path);
        break;
    case BEL_SOURCE_MEMORY: copy_memory(arena, &from->memory, &copy.memory); break;
    case BEL_SOURCE_TEXT:
        copy.text.paths = bel_names_copy(arena, from->text.paths, (size_t)from->text.path_count);
        break;
    case BEL_SOURCE_TFRECORD: copy_tfrecord(arena, &from->tfrecord, &copy.tfrecord); break;
    case BEL_SOURCE_TOKENS:
        copy.tokens.paths =
            bel_names_copy(arena, from->tokens.paths, (size_t)from->tokens.path_count);
        copy.tokens.key = copy_text(arena, from->tokens.key);
        break;
    case BEL_SOURCE_SAMPLE:
        copy.sample.weights =
            bel_arena_copy(arena, from->sample.weights, (size_t)from->inner_count * sizeof(double));
        break;
    case BEL_SOURCE_ENUMERATE:
        copy.enumerate.field = copy_text(arena, from->enumerate.field);
        break;
    case BEL_SOURCE_CACHE: copy.cache.path = copy_text(arena, from->cache.path); break;
    case BEL_SOURCE_FLAT:
        copy.flat.drop =
            bel_names_copy(arena, from->flat.drop, bel_name_list_length(from->flat.drop));
        break;
    case BEL_SOURCE_GENERATOR:
    case BEL_SOURCE_CONCATENATE:
    case BEL_SOURCE_INTERLEAVE:
    case BEL_SOURCE_WINDOW:
    case BEL_SOURCE_ZIP:
    case BEL_SOURCE_MEMORY_TABLE: break; // only datasets, functions, numbers and data of the caller
    }
    *out_copy = copy;
}

const bel_padded_shape *bel_padded_shapes_copy(bel_arena *arena, const bel_padded_shape *shapes,
                                               int count)
{
    bel_padded_shape *copy = bel_arena_alloc(arena, (size_t)count * sizeof *copy);
    for (int i = 0; i < count; i++) {
        copy[i] = shapes[i];
        copy[i].field = copy_text(arena, shapes[i].field);
    }
    return copy;
}

void bel_description_copy(bel_arena *arena, const bel_description *from, bel_description *out_copy)
{
    bel_description copy = *from;
    bel_source_description_copy(arena, &from->source, &copy.source);
    copy.stages = bel_arena_alloc(arena, from->stage_count * sizeof *copy.stages);
    for (size_t i = 0; i < from->stage_count; i++) {
        copy.stages[i] = from->stages[i];
        if (from->stages[i].kind != BEL_STAGE_BUCKET) continue;
        copy.stages[i].boundaries = bel_arena_copy(arena, from->stages[i].boundaries,
                                                   (size_t)from->stages[i].count * sizeof(int64_t));
    }
    copy.maps = bel_arena_alloc(arena, from->map_count * sizeof *copy.maps);
    for (size_t i = 0; i < from->map_count; i++) {
        copy.maps[i] = from->maps[i];
        copy.maps[i].identity = copy_text(arena, from->maps[i].identity);
        if (from->maps[i].owner != NULL) atomic_fetch_add(&from->maps[i].owner->holders, 1);
        copy.maps[i].drop =
            bel_names_copy(arena, from->maps[i].drop, bel_name_list_length(from->maps[i].drop));
    }
    bel_named_files *named =
        bel_arena_alloc(arena, (size_t)from->named_files_count * sizeof *named);
    for (int i = 0; i < from->named_files_count; i++) {
        named[i].field = copy_text(arena, from->named_files[i].field);
        named[i].folder = copy_text(arena, from->named_files[i].folder);
    }
    copy.named_files = named;
    copy.padded_shapes =
        bel_padded_shapes_copy(arena, from->padded_shapes, from->padded_shape_count);
    bel_pad_value *pad_values =
        bel_arena_alloc(arena, (size_t)from->pad_value_count * sizeof *pad_values);
    for (int i = 0; i < from->pad_value_count; i++) {
        pad_values[i] = from->pad_values[i];
        pad_values[i].field = copy_text(arena, from->pad_values[i].field);
    }
    copy.pad_values = pad_values;
    const char **labels = bel_arena_alloc(arena, (size_t)(from->label_count + 1) * sizeof *labels);
    for (int i = 0; i < from->label_count; i++)
        labels[i] = copy_text(arena, from->labels[i]);
    copy.labels = labels;
    *out_copy = copy;
}

void bel_description_release(const bel_description *description)
{
    for (int i = 0; i < description->source.inner_count; i++)
        bel_description_release(&description->source.inner[i]);
    for (size_t i = 0; i < description->map_count; i++) {
        bel_map_owner *owner = description->maps[i].owner;
        if (owner == NULL || atomic_fetch_sub(&owner->holders, 1) > 1) continue;
        owner->destroy(owner->user);
        bel_free(owner);
    }
}

static bool idx_is_elsewhere(const bel_idx_description *idx)
{
    return bel_paths_are_elsewhere(&idx->images_path, 1) ||
           (idx->labels_path != NULL && bel_paths_are_elsewhere(&idx->labels_path, 1));
}

bool bel_description_is_elsewhere(const bel_description *description)
{
    const bel_source_description *source = &description->source;
    for (int i = 0; i < source->inner_count; i++)
        if (bel_description_is_elsewhere(&source->inner[i])) return true;
    switch (source->kind) {
    case BEL_SOURCE_CSV: return bel_paths_are_elsewhere(source->csv.paths, source->csv.path_count);
    case BEL_SOURCE_TEXT:
        return bel_paths_are_elsewhere(source->text.paths, source->text.path_count);
    case BEL_SOURCE_TFRECORD:
        return bel_paths_are_elsewhere(source->tfrecord.paths, source->tfrecord.path_count);
    case BEL_SOURCE_TOKENS:
        return bel_paths_are_elsewhere(source->tokens.paths, source->tokens.path_count);
    case BEL_SOURCE_IDX: return idx_is_elsewhere(&source->idx);
    default: return false; // memory, functions, and sources that are made of datasets
    }
}
