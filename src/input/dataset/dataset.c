// Builds a dataset. Every call checks its arguments and its position in the order. The dataset
// keeps the first error, so that a description can be written without checking each call. Opening
// the dataset returns that error, and errors of files, as nothing is opened here.
//
// Three phases define the order: stages that renumber records work only on numbers and must come
// before map; repeat may also follow map, as a map changes each record separately; only prefetch
// may follow the batch stage. Texts are copied; memory fields and `user` stay the caller's.
#include "input/dataset/dataset_build.h"

#include "base/alloc.h"
#include "input/order/buckets.h"

void bel_dataset_fail(bel_dataset *dataset, bel_status *status)
{
    if (dataset->status == NULL) {
        dataset->status = status;
    } else {
        bel_status_ignore(status); // the first error counts
    }
}

static bel_description begin_description(void)
{
    return (bel_description){.prefetch_depth = BEL_PREFETCH_AUTO,
                             .prefetch_thread_count = BEL_PREFETCH_AUTO};
}

bel_dataset *bel_dataset_create(const bel_source_description *source, bel_status *status)
{
    bel_dataset *dataset = bel_xcalloc(1, sizeof *dataset);
    dataset->arena = bel_arena_create();
    dataset->description = begin_description();
    dataset->status = status;
    if (status == NULL) {
        bel_source_description_copy(dataset->arena, source, &dataset->description.source);
    }
    return dataset;
}

void bel_dataset_wrap(bel_dataset *dataset, bel_source_description source)
{
    bel_description *inner = bel_arena_alloc(dataset->arena, sizeof *inner);
    bel_description_copy(dataset->arena, &dataset->description, inner);
    bel_description_release(&dataset->description); // the copy holds users of maps, too
    bel_free(dataset->description.stages);
    bel_free(dataset->description.maps);
    dataset->stage_capacity = dataset->map_capacity = 0;
    dataset->description = begin_description();
    dataset->description.labels = inner->labels; // they apply to the batches, at any level
    dataset->description.label_count = inner->label_count;
    source.inner = inner;
    source.inner_count = 1;
    dataset->description.source = source;
    dataset->phase = BEL_PHASE_NUMBERS;
    dataset->varies = dataset->varies || dataset->reordered;
}

void bel_dataset_destroy(bel_dataset *dataset)
{
    if (dataset == NULL) return;
    bel_description_release(&dataset->description);
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
    if (dataset->phase != BEL_PHASE_BATCHED) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected a batch stage, got none; end "
                                             "it with batch or padded_batch");
    }
    *out_description = &dataset->description;
    return NULL;
}

// --- Stages before map ---------------------------------------------------------------------------

bool bel_dataset_may_come(bel_dataset *dataset, const char *name, bel_dataset_phase last)
{
    if (dataset->status != NULL) return false;
    if (dataset->phase <= last) return true;
    const char *hint = "stages before map work on record numbers, which map no longer knows";
    if (dataset->phase == BEL_PHASE_BATCHED) {
        hint = "nothing but prefetch follows the batch stage (batches then span epochs)";
    }
    bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                      "dataset: expected %s before %s, got it after; %s", name,
                                      dataset->phase == BEL_PHASE_BATCHED ? "batch" : "map", hint));
    return false;
}

static void add_stage(bel_dataset *dataset, bel_stage stage)
{
    bel_description *description = &dataset->description;
    description->stages = bel_xgrow(description->stages, &dataset->stage_capacity,
                                    description->stage_count + 1, sizeof stage);
    description->stages[description->stage_count++] = stage;
    bool cuts = stage.kind == BEL_STAGE_SHARD || stage.kind == BEL_STAGE_TAKE ||
                stage.kind == BEL_STAGE_SKIP;
    dataset->parts_vary = dataset->parts_vary || (cuts && dataset->reordered);
    bool orders = stage.kind == BEL_STAGE_SHUFFLE || stage.kind == BEL_STAGE_SLIDE ||
                  stage.kind == BEL_STAGE_REPEAT || stage.kind == BEL_STAGE_BUCKET;
    dataset->reordered = dataset->reordered || orders;
    dataset->bucketed = dataset->bucketed || stage.kind == BEL_STAGE_BUCKET;
}

// Adds a stage whose count must be at least `minimum`.
static void add_counting_stage(bel_dataset *dataset, const char *name, int64_t minimum,
                               bel_stage stage)
{
    if (!bel_dataset_may_come(dataset, name, BEL_PHASE_NUMBERS)) return;
    if (dataset->bucketed) {
        bel_dataset_fail(
            dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                             "dataset: expected %s before bucket_by_length, got it after, where "
                             "it would tear batches apart",
                             name));
        return;
    }
    if (stage.count < minimum) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "%s: expected a count of at least %lld, got %lld", name,
                                          (long long)minimum, (long long)stage.count));
        return;
    }
    add_stage(dataset, stage);
}

void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index)
{
    if (count >= 1 && (index < 0 || index >= count)) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "shard: expected an index in 0..%lld, got %lld",
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

// Allowed after map, too: a map changes each record separately, so their order does not matter.
void bel_dataset_repeat(bel_dataset *dataset, int64_t count)
{
    if (!bel_dataset_may_come(dataset, "repeat", BEL_PHASE_MAPPED)) return;
    if (count < 1 && count != BEL_REPEAT_FOREVER) {
        bel_dataset_fail(
            dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                             "repeat: expected a count of at least 1, or %d for no end, got %lld",
                             BEL_REPEAT_FOREVER, (long long)count));
        return;
    }
    add_stage(dataset, (bel_stage){.kind = BEL_STAGE_REPEAT, .count = count});
}

void bel_dataset_shuffle_sliding(bel_dataset *dataset, int64_t buffer_size, uint64_t seed)
{
    add_counting_stage(dataset, "shuffle_sliding", 1,
                       (bel_stage){.kind = BEL_STAGE_SLIDE, .count = buffer_size, .seed = seed});
}

// Checks that each record of an epoch is in every other one, under the same number.
static bel_status *check_constant(const bel_dataset *dataset)
{
    if (dataset->varies) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "bucket_by_length: expected no shuffle, sample or repeat in a dataset inside; "
            "it asks for each record's length once, when the dataset is opened");
    }
    if (!dataset->parts_vary) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "bucket_by_length: expected shard, take and skip before shuffle and repeat, as "
                   "each epoch would have other records");
}

static bel_status *check_boundaries(const int64_t *boundaries, int count)
{
    if (boundaries == NULL || count < 1 || count >= BEL_BUCKETS_MOST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "bucket_by_length: expected 1..%d boundaries, got %d",
                       BEL_BUCKETS_MOST - 1, boundaries == NULL ? 0 : count);
    }
    for (int i = 1; i < count; i++) {
        if (boundaries[i - 1] < boundaries[i]) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "bucket_by_length: expected boundaries that rise, got %lld after %lld",
                       (long long)boundaries[i], (long long)boundaries[i - 1]);
    }
    return NULL;
}

void bel_dataset_bucket_by_length(bel_dataset *dataset, bel_length_fn *length, void *user,
                                  const int64_t *boundaries, int boundary_count)
{
    if (!bel_dataset_may_come(dataset, "bucket_by_length", BEL_PHASE_NUMBERS)) return;
    bel_status *status = NULL;
    if (length == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "bucket_by_length: expected a function, got NULL");
    }
    if (status == NULL) status = check_boundaries(boundaries, boundary_count);
    if (status == NULL) status = check_constant(dataset);
    if (status == NULL && dataset->bucketed) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected one bucket_by_length, got two");
    }
    if (status != NULL) {
        bel_dataset_fail(dataset, status);
        return;
    }
    add_stage(dataset, (bel_stage){.kind = BEL_STAGE_BUCKET,
                                   .length = length,
                                   .user = user,
                                   .count = boundary_count,
                                   .boundaries = bel_arena_copy(dataset->arena, boundaries,
                                                                (size_t)boundary_count *
                                                                    sizeof *boundaries)});
}

void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user)
{
    if (!bel_dataset_may_come(dataset, "filter", BEL_PHASE_NUMBERS)) return;
    if (keep == NULL) {
        bel_dataset_fail(dataset,
                         BEL_ERR(BEL_INVALID_ARGUMENT, "filter: expected a function, got NULL"));
    } else if (dataset->reordered) {
        bel_dataset_fail(
            dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                             "dataset: expected filter before shuffle and repeat, got it after; "
                             "it judges each record once, when the dataset is opened"));
    } else {
        add_stage(dataset, (bel_stage){.kind = BEL_STAGE_FILTER, .keep = keep, .user = user});
    }
}

// --- map and later stages ------------------------------------------------------------------------

// False: the dataset refuses it.
static bool add_map(bel_dataset *dataset, bel_map_stage stage, const char *const *drop)
{
    if (!bel_dataset_may_come(dataset, "map", BEL_PHASE_MAPPED)) return false;
    if (stage.map == NULL) {
        bel_dataset_fail(dataset,
                         BEL_ERR(BEL_INVALID_ARGUMENT, "map: expected a function, got NULL"));
        return false;
    }
    bel_description *description = &dataset->description;
    description->maps = bel_xgrow(description->maps, &dataset->map_capacity,
                                  description->map_count + 1, sizeof *description->maps);
    if (stage.identity != NULL) stage.identity = bel_arena_strdup(dataset->arena, stage.identity);
    stage.drop = bel_names_copy(dataset->arena, drop, bel_name_list_length(drop));
    description->maps[description->map_count++] = stage;
    dataset->phase = BEL_PHASE_MAPPED;
    return true;
}

void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user, const char *const *drop)
{
    (void)add_map(dataset, (bel_map_stage){.map = map, .user = user}, drop);
}

void bel_dataset_map_owned(bel_dataset *dataset, bel_map_fn *map, void *user,
                           void (*destroy)(void *user), const char *identity,
                           const char *const *drop)
{
    bel_map_stage stage = {.map = map, .user = user, .identity = identity};
    if (destroy != NULL) {
        stage.owner = bel_xmalloc(sizeof *stage.owner);
        *stage.owner = (bel_map_owner){.holders = 1, .user = user, .destroy = destroy};
    }
    if (add_map(dataset, stage, drop) || destroy == NULL) return;
    destroy(user);
    bel_free(stage.owner);
}

void bel_dataset_named_files(bel_dataset *dataset, const char *field, const char *folder)
{
    if (!bel_dataset_may_come(dataset, "named_files", BEL_PHASE_MAPPED)) return;
    if (field == NULL || field[0] == '\0') {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "named_files: expected the name of a field, got none"));
        return;
    }
    bel_description *description = &dataset->description;
    int count = description->named_files_count;
    bel_named_files *all = bel_arena_alloc(dataset->arena, (size_t)(count + 1) * sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = description->named_files[i];
    all[count] = (bel_named_files){.field = bel_arena_strdup(dataset->arena, field)};
    if (folder != NULL) all[count].folder = bel_arena_strdup(dataset->arena, folder);
    description->named_files = all;
    description->named_files_count = count + 1;
}

static void set_batch(bel_dataset *dataset, const char *name, int64_t batch_size)
{
    if (dataset->status != NULL) return;
    if (dataset->phase == BEL_PHASE_BATCHED) {
        bel_dataset_fail(
            dataset, BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected one batch stage, got two"));
    } else if (batch_size < 1 || batch_size > INT32_MAX) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "%s: expected a batch size in 1..%d, got %lld", name,
                                          INT32_MAX, (long long)batch_size));
    } else {
        dataset->description.batch_size = batch_size;
        dataset->phase = BEL_PHASE_BATCHED;
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
            bel_dataset_fail(
                dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
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

void bel_dataset_pad_value(bel_dataset *dataset, const char *field, double value)
{
    if (dataset->status != NULL) return;
    bel_description *description = &dataset->description;
    int count = description->pad_value_count;
    if (!description->padded) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "dataset: expected pad_value after padded_batch"));
        return;
    }
    if (field == NULL) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "pad_value: expected the name of a field, got NULL"));
        return;
    }
    bel_pad_value *values = bel_arena_alloc(dataset->arena, (size_t)(count + 1) * sizeof *values);
    for (int i = 0; i < count; i++)
        values[i] = description->pad_values[i];
    values[count] = (bel_pad_value){bel_arena_strdup(dataset->arena, field), value};
    description->pad_values = values;
    description->pad_value_count = count + 1;
}

void bel_dataset_labels(bel_dataset *dataset, const char *const *names, int count)
{
    if (dataset->status != NULL) return;
    bel_description *description = &dataset->description;
    int have = description->label_count, all = have + (count > 0 ? count : 0);
    const char **labels = bel_arena_alloc(dataset->arena, (size_t)(all + 1) * sizeof *labels);
    for (int i = 0; i < all; i++) {
        const char *name = i < have ? description->labels[i] : names[i - have];
        if (name == NULL) {
            bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                              "labels: expected the name of a field, got NULL"));
            return;
        }
        labels[i] = i < have ? name : bel_arena_strdup(dataset->arena, name);
    }
    description->labels = labels;
    description->label_count = all;
}

void bel_dataset_skip_bad_records(bel_dataset *dataset, int64_t most)
{
    if (dataset->status != NULL) return;
    if (dataset->phase != BEL_PHASE_BATCHED || most < 0) {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "dataset: expected skip_bad_records after batch, with a "
                                          "number of 0 or more, got %lld",
                                          (long long)most));
        return;
    }
    dataset->description.most_bad_records = most;
}

void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count)
{
    if (dataset->status != NULL) return;
    if (dataset->phase != BEL_PHASE_BATCHED) {
        bel_dataset_fail(dataset,
                         BEL_ERR(BEL_INVALID_ARGUMENT,
                                 "dataset: expected prefetch after batch, got it before; it keeps "
                                 "whole batches ready"));
        return;
    }
    enum { MAX_DEPTH = 1024 };
    bool threads_fit = depth == 0 || thread_count == BEL_PREFETCH_AUTO ||
                       (thread_count >= 1 && thread_count <= MAX_DEPTH);
    if (depth < BEL_PREFETCH_AUTO || depth > MAX_DEPTH || !threads_fit) {
        bel_dataset_fail(dataset,
                         BEL_ERR(BEL_INVALID_ARGUMENT,
                                 "prefetch: expected a depth in 0..%d (0: none is kept ready) and "
                                 "1..%d threads, or BEL_PREFETCH_AUTO for each, got %d and %d",
                                 MAX_DEPTH, MAX_DEPTH, depth, thread_count));
        return;
    }
    dataset->description.prefetch_depth = depth;
    dataset->description.prefetch_thread_count = thread_count;
}
