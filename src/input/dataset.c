// Building a dataset: every call checks its own arguments and its place in the order, and the
// first error sticks, so that a description can be written without looking at each call. It is
// told when the dataset is opened; errors of files come then, too, as nothing is opened here.
//
// Three phases keep the order: stages that renumber records work on numbers alone and must come
// before map; repeat may also follow map, as a map changes each record alone; behind the batch
// stage only prefetch is left. Texts are copied, memory fields and `user` stay the caller's.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "input/description.h"

// The order of the stages, as far as it matters.
typedef enum phase { PHASE_NUMBERS, PHASE_MAPPED, PHASE_BATCHED } phase;

struct bel_dataset {
    bel_arena *arena;
    bel_description description;
    size_t stage_capacity;
    size_t map_capacity;
    phase phase;
    bool reordered; // a shuffle or repeat came already
    bel_status *status;
};

static void fail(bel_dataset *dataset, bel_status *status)
{
    if (dataset->status == NULL) {
        dataset->status = status;
    } else {
        bel_status_ignore(status); // the first error counts
    }
}

static bel_dataset *create(const bel_source_description *source, bel_status *status)
{
    bel_dataset *dataset = bel_xcalloc(1, sizeof *dataset);
    dataset->arena = bel_arena_create();
    dataset->description = (bel_description){.prefetch_depth = 4, .prefetch_thread_count = 1};
    dataset->status = status;
    if (status == NULL) {
        bel_source_description_copy(dataset->arena, source, &dataset->description.source);
    }
    return dataset;
}

void bel_dataset_destroy(bel_dataset *dataset)
{
    if (dataset == NULL) return;
    bel_free(dataset->description.stages);
    bel_free(dataset->description.maps);
    bel_arena_destroy(dataset->arena);
    bel_status_destroy(dataset->status);
    bel_free(dataset);
}

bel_status *bel_dataset_describe(const bel_dataset *dataset,
                                 const bel_description **out_description)
{
    if (dataset == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a dataset, got NULL");
    if (dataset->status != NULL) {
        return BEL_ERR(bel_status_code(dataset->status), "%s", bel_status_message(dataset->status));
    }
    if (dataset->phase != PHASE_BATCHED) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected a batch stage, there is none; end "
                                             "it with bel_dataset_batch or "
                                             "bel_dataset_padded_batch");
    }
    *out_description = &dataset->description;
    return NULL;
}

// --- Sources -------------------------------------------------------------------------------------

static bel_status *check_scale(double scale)
{
    if (isfinite(scale)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected a finite scale, got %g", scale);
}

static bel_status *check_class_count(int64_t class_count)
{
    if (class_count >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "dataset: expected a class_count of 0 (any) or more, got %lld",
                   (long long)class_count);
}

static bel_status *check_csv_columns(const bel_csv_options *options)
{
    for (int i = 0; options->columns != NULL && i < options->column_count; i++) {
        const bel_csv_column *column = &options->columns[i];
        if (column->name == NULL || column->name[0] == '\0') {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: typed column %d has no name", i);
        }
        if (column->dtype != BEL_DTYPE_F32 && column->dtype != BEL_DTYPE_I32 &&
            column->dtype != BEL_DTYPE_I64 && column->dtype != BEL_DTYPE_STRING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "csv: column \"%s\": expected f32, i32, i64 or string, got %s",
                           column->name, bel_dtype_name(column->dtype));
        }
    }
    return NULL;
}

static bel_status *check_paths(const char *source, const char *const *paths, int count)
{
    if (paths == NULL || count < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected at least one path, got none", source);
    }
    for (int i = 0; i < count; i++) {
        if (paths[i] != NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: path %d is NULL", source, i);
    }
    return NULL;
}

static bel_status *check_csv(const bel_csv_options *options)
{
    if (options == NULL) return check_paths("csv", NULL, 0);
    BEL_TRY(check_paths("csv", options->paths, options->path_count));
    if (options->delimiter != '\0' && strchr("\"\r\n+-.0123456789eE", options->delimiter) != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "csv: a quote, a line break or a character of numbers cannot be the "
                       "delimiter");
    }
    if (options->column_names != NULL && (!options->no_header || options->column_name_count < 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: column_names goes with no_header and a "
                                             "column_name_count of at least 1");
    }
    for (int i = 0; options->column_names != NULL && i < options->column_name_count; i++) {
        if (options->column_names[i] == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: column name %d is NULL", i);
        }
    }
    if (options->columns != NULL && options->column_count < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: expected a column_count of at least 1, got %d",
                       options->column_count);
    }
    if (options->columns != NULL && options->id_column_count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id_columns do not go with columns");
    }
    if (options->columns != NULL && options->length_column != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: length_column does not go with columns");
    }
    for (int i = 0; i < options->id_column_count; i++) {
        if (options->id_columns[i] == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id column %d is NULL", i);
        }
    }
    BEL_TRY(check_csv_columns(options));
    BEL_TRY(check_scale(options->scale));
    return check_class_count(options->class_count);
}

bel_dataset *bel_dataset_from_csv(const bel_csv_options *options)
{
    bel_status *status = check_csv(options);
    bel_source_description source = {.kind = BEL_SOURCE_CSV};
    if (status == NULL) source.csv = *options;
    if (source.csv.delimiter == '\0') source.csv.delimiter = ',';
    if (source.csv.scale == 0) source.csv.scale = 1;
    if (source.csv.vector_name == NULL) source.csv.vector_name = "x";
    return create(&source, status);
}

bel_dataset *bel_dataset_from_idx(const char *images_path, const char *labels_path, double scale,
                                  int64_t class_count)
{
    bel_status *status = NULL;
    if (images_path == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "idx: expected a path of images, got NULL");
    }
    if (status == NULL) status = check_scale(scale);
    if (status == NULL) status = check_class_count(class_count);
    bel_source_description source = {
        .kind = BEL_SOURCE_IDX,
        .idx = {images_path, labels_path, scale == 0 ? 1 : scale, class_count},
    };
    return create(&source, status);
}

bel_dataset *bel_dataset_from_text(const char *const *paths, int path_count)
{
    bel_status *status = check_paths("text", paths, path_count);
    bel_source_description source = {.kind = BEL_SOURCE_TEXT, .text = {paths, path_count}};
    return create(&source, status);
}

bel_dataset *bel_dataset_from_memory(const bel_memory_field *fields, int field_count)
{
    bel_status *status = NULL;
    if (fields == NULL || field_count < 1) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "memory: expected at least one field, got none");
    }
    bel_source_description source = {
        .kind = BEL_SOURCE_MEMORY,
        .memory = {fields, field_count},
    };
    return create(&source, status);
}

// --- Stages before map ---------------------------------------------------------------------------

// True when a stage called `name` may still come; `last` is the last phase in which it may.
static bool may_come(bel_dataset *dataset, const char *name, phase last)
{
    if (dataset->status != NULL) return false;
    if (dataset->phase <= last) return true;
    const char *hint = "stages before map work on record numbers, which map no longer knows";
    if (dataset->phase == PHASE_BATCHED) {
        hint = "nothing but prefetch follows the batch stage (batches then span epochs)";
    }
    fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected %s before %s, got it behind; %s",
                          name, dataset->phase == PHASE_BATCHED ? "batch" : "map", hint));
    return false;
}

static void add_stage(bel_dataset *dataset, bel_stage stage)
{
    bel_description *description = &dataset->description;
    description->stages = bel_xgrow(description->stages, &dataset->stage_capacity,
                                    description->stage_count + 1, sizeof stage);
    description->stages[description->stage_count++] = stage;
    if (stage.kind == BEL_STAGE_SHUFFLE || stage.kind == BEL_STAGE_REPEAT) {
        dataset->reordered = true;
    }
}

// A stage whose count must be at least `minimum`.
static void add_counting_stage(bel_dataset *dataset, const char *name, int64_t minimum,
                               bel_stage stage)
{
    if (!may_come(dataset, name, PHASE_NUMBERS)) return;
    if (stage.count < minimum) {
        fail(dataset,
             BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a count of at least %lld, got %lld", name,
                     (long long)minimum, (long long)stage.count));
        return;
    }
    add_stage(dataset, stage);
}

void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index)
{
    if (count >= 1 && (index < 0 || index >= count)) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "shard: expected an index in 0..%lld, got %lld",
                              (long long)count - 1, (long long)index));
        return;
    }
    add_counting_stage(dataset, "shard", 1,
                       (bel_stage){.kind = BEL_STAGE_SHARD, .count = count, .index = index});
}

void bel_dataset_take(bel_dataset *dataset, int64_t count)
{
    add_counting_stage(dataset, "take", 0, (bel_stage){.kind = BEL_STAGE_TAKE, .count = count});
}

void bel_dataset_skip(bel_dataset *dataset, int64_t count)
{
    add_counting_stage(dataset, "skip", 0, (bel_stage){.kind = BEL_STAGE_SKIP, .count = count});
}

void bel_dataset_shuffle(bel_dataset *dataset, int64_t buffer_size, uint64_t seed)
{
    add_counting_stage(dataset, "shuffle", 0,
                       (bel_stage){.kind = BEL_STAGE_SHUFFLE, .count = buffer_size, .seed = seed});
}

// Behind map too: a map changes each record alone, so it does not matter which of the two is first.
void bel_dataset_repeat(bel_dataset *dataset, int64_t count)
{
    if (!may_come(dataset, "repeat", PHASE_MAPPED)) return;
    if (count < 1 && count != BEL_REPEAT_FOREVER) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                              "repeat: expected a count of at least 1, or BEL_REPEAT_FOREVER (%d), "
                              "got %lld",
                              BEL_REPEAT_FOREVER, (long long)count));
        return;
    }
    add_stage(dataset, (bel_stage){.kind = BEL_STAGE_REPEAT, .count = count});
}

void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user)
{
    if (!may_come(dataset, "filter", PHASE_NUMBERS)) return;
    if (keep == NULL) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "filter: expected a function, got NULL"));
    } else if (dataset->reordered) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                              "dataset: expected filter before shuffle and repeat, got it behind; "
                              "it judges each record once, when the dataset is opened"));
    } else {
        add_stage(dataset, (bel_stage){.kind = BEL_STAGE_FILTER, .keep = keep, .user = user});
    }
}

// --- map and what follows ------------------------------------------------------------------------

void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user, const char *const *drop)
{
    if (!may_come(dataset, "map", PHASE_MAPPED)) return;
    if (map == NULL) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "map: expected a function, got NULL"));
        return;
    }
    size_t drop_count = 0;
    while (drop != NULL && drop[drop_count] != NULL)
        drop_count++;
    bel_description *description = &dataset->description;
    description->maps = bel_xgrow(description->maps, &dataset->map_capacity,
                                  description->map_count + 1, sizeof *description->maps);
    description->maps[description->map_count++] = (bel_map_stage){
        .map = map,
        .user = user,
        .drop = bel_names_copy(dataset->arena, drop, drop_count),
    };
    dataset->phase = PHASE_MAPPED;
}

static void set_batch(bel_dataset *dataset, const char *name, int64_t batch_size)
{
    if (dataset->status != NULL) return;
    if (dataset->phase == PHASE_BATCHED) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected one batch stage, got two"));
    } else if (batch_size < 1 || batch_size > INT32_MAX) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a batch size in 1..%d, got %lld",
                              name, INT32_MAX, (long long)batch_size));
    } else {
        dataset->description.batch_size = batch_size;
        dataset->phase = PHASE_BATCHED;
    }
}

void bel_dataset_batch(bel_dataset *dataset, int64_t batch_size)
{
    set_batch(dataset, "batch", batch_size);
}

void bel_dataset_padded_batch(bel_dataset *dataset, int64_t batch_size,
                              const bel_padded_shape *padded_shapes, int shape_count)
{
    set_batch(dataset, "padded_batch", batch_size);
    if (dataset->status != NULL) return;
    int count = padded_shapes != NULL && shape_count > 0 ? shape_count : 0;
    for (int i = 0; i < count; i++) {
        const bel_padded_shape *padded = &padded_shapes[i];
        if (padded->field == NULL || padded->shape.rank < 0 || padded->shape.rank >= BEL_MAX_RANK) {
            fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                  "padded_batch: shape %d: expected a field's name and at most %d "
                                  "dimensions",
                                  i, BEL_MAX_RANK - 1));
            return;
        }
    }
    bel_description *description = &dataset->description;
    description->padded = true;
    description->padded_shapes = bel_padded_shapes_copy(dataset->arena, padded_shapes, count);
    description->padded_shape_count = count;
}

void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count)
{
    if (dataset->status != NULL) return;
    if (dataset->phase != PHASE_BATCHED) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                              "dataset: expected prefetch behind batch, got it before; it keeps "
                              "whole batches ready"));
        return;
    }
    enum { MAX_DEPTH = 1024 };
    bool threads_fit = depth == 0 || (thread_count >= 1 && thread_count <= MAX_DEPTH);
    if (depth < 0 || depth > MAX_DEPTH || !threads_fit) {
        fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                              "prefetch: expected a depth in 0..%d (0: none is kept ready) and "
                              "1..%d threads, got %d and %d",
                              MAX_DEPTH, MAX_DEPTH, depth, thread_count));
        return;
    }
    dataset->description.prefetch_depth = depth;
    dataset->description.prefetch_thread_count = thread_count;
}
