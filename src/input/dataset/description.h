// Description of a dataset before anything is opened: a source, stages that renumber, maps, a batch
// stage and the depth of reading ahead. A dataset builds one. Opening copies it, so that their
// lifetimes are independent.
#ifndef BELFRY_INPUT_DATASET_DESCRIPTION_H
#define BELFRY_INPUT_DATASET_DESCRIPTION_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/arena.h"
#include "belfry/columns.h"
#include "belfry/tokens.h"
#include "input/order/stage.h"

typedef struct bel_idx_description {
    const char *images_path;
    const char *labels_path; // NULL: no labels
    double scale;
    int64_t class_count;
} bel_idx_description;

typedef struct bel_memory_description {
    const bel_memory_field *fields;
    int field_count;
} bel_memory_description;

typedef struct bel_memory_table_description {
    const bel_memory_table *rows;
    const bel_columns *columns;
    bool unlabeled;
} bel_memory_table_description;

typedef struct bel_text_description {
    const char *const *paths;
    int path_count;
} bel_text_description;

typedef struct bel_generator_description {
    bel_make_fn *make;   // makes records by number, or
    bel_generator steps; // makes them one after the other
    void *user;
    int64_t record_count; // BEL_REPEAT_FOREVER: endless; 0: count a sequential one
} bel_generator_description;

typedef enum bel_source_tag {
    BEL_SOURCE_CSV,
    BEL_SOURCE_IDX,
    BEL_SOURCE_MEMORY,
    BEL_SOURCE_MEMORY_TABLE,
    BEL_SOURCE_TEXT,
    BEL_SOURCE_TFRECORD,
    BEL_SOURCE_TOKENS,
    BEL_SOURCE_GENERATOR,
    // Made of datasets:
    BEL_SOURCE_CONCATENATE,
    BEL_SOURCE_INTERLEAVE,
    BEL_SOURCE_SAMPLE,
    BEL_SOURCE_ZIP,
    BEL_SOURCE_ENUMERATE,
    BEL_SOURCE_WINDOW,
    BEL_SOURCE_FLAT,
    BEL_SOURCE_CACHE,
} bel_source_tag;

typedef struct bel_interleave_description {
    int cycle_length; // 0: all
    int64_t block_length;
} bel_interleave_description;

typedef struct bel_sample_description {
    const double *weights; // one per dataset
    int64_t record_count;  // per epoch; 0: all records once
    uint64_t seed;
} bel_sample_description;

typedef struct bel_window_description {
    int64_t size, shift, stride;
    bool drop_remainder;
} bel_window_description;

typedef struct bel_flat_description {
    bel_flat_count_fn *count;
    bel_flat_map_fn *map;
    void *user;
    const char *const *drop; // NULL-terminated, or NULL
} bel_flat_description;

typedef struct bel_cache_description {
    const char *path;   // NULL: cache in memory
    int64_t most_bytes; // limit in memory; 0: no limit
} bel_cache_description;

typedef struct bel_enumerate_description {
    const char *field;
    int64_t start;
} bel_enumerate_description;

typedef struct bel_source_description {
    bel_source_tag kind;
    const struct bel_description *inner; // its datasets, without batch stage
    int inner_count;
    union {
        bel_csv_options csv;
        bel_idx_description idx;
        bel_memory_description memory;
        bel_memory_table_description memory_table;
        bel_text_description text;
        bel_tfrecord_options tfrecord;
        bel_token_options tokens;
        bel_generator_description generator;
        bel_interleave_description interleave;
        bel_sample_description sample;
        bel_enumerate_description enumerate;
        bel_window_description window;
        bel_flat_description flat;
        bel_cache_description cache;
    };
} bel_source_description;

// Reference-counted owner of a map's `user`: one object for the dataset and for everything opened
// from it.
typedef struct bel_map_owner {
    atomic_int holders;
    void *user;
    void (*destroy)(void *user);
} bel_map_owner;

typedef struct bel_map_stage {
    bel_map_fn *map;
    void *user;
    bel_map_owner *owner;    // NULL: the caller owns `user`
    const char *identity;    // part of the fingerprint; NULL: none
    const char *const *drop; // NULL-terminated, or NULL
} bel_map_stage;

// Files that maps read, named by a text field of raw records.
typedef struct bel_named_files {
    const char *field;
    const char *folder; // base of relative paths; NULL: folder of the record's file
} bel_named_files;

typedef struct bel_pad_value {
    const char *field;
    double value;
} bel_pad_value;

typedef struct bel_description {
    bel_source_description source;
    bel_stage *stages;
    size_t stage_count;
    bel_map_stage *maps;
    size_t map_count;
    const bel_named_files *named_files;
    int named_files_count;
    int64_t batch_size; // 0: no batch stage
    bool padded;
    const bel_padded_shape *padded_shapes;
    int padded_shape_count;
    const bel_pad_value *pad_values;
    int pad_value_count;
    const char *const *labels; // besides BEL_LABEL_FIELD
    int label_count;
    int64_t most_bad_records;  // 0: a bad record is an error
    int prefetch_depth;        // or BEL_PREFETCH_AUTO
    int prefetch_thread_count; // likewise
} bel_description;

// Deep copies into an arena. The data of memory fields, and `user`, stay the caller's.
void bel_source_description_copy(bel_arena *arena, const bel_source_description *from,
                                 bel_source_description *out_copy);
size_t bel_name_list_length(const char *const *names); // number of names before the NULL; NULL: 0
const char *const *bel_names_copy(bel_arena *arena, const char *const *names, size_t count);
const bel_padded_shape *bel_padded_shapes_copy(bel_arena *arena, const bel_padded_shape *shapes,
                                               int count);
void bel_description_copy(bel_arena *arena, const bel_description *from, bel_description *out_copy);

// Releases the users of maps that a description or a copy of it holds. A zeroed one is accepted.
void bel_description_release(const bel_description *description);

// Whether a file of its sources is on other hosts, as bel_paths_are_elsewhere says. Opens nothing.
bool bel_description_is_elsewhere(const bel_description *description);

// Gets the description of a dataset, or its first error. INVALID_ARGUMENT also if the batch stage
// is missing. The result lives as long as the dataset, and changes only with it.
bel_status *bel_dataset_describe(const bel_dataset *dataset,
                                 const bel_description **out_description) BEL_MUST_USE;

#endif
