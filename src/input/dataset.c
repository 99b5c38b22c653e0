// Building a description. A stage that cannot stand where it is put makes an error that sticks; the
// stages behind it are then ignored, so that the first mistake is the one reported.
#include "input/description.h"

#include <string.h>

#include "base/alloc.h"

// Stages come in phases: numbers, records, batches, batches ahead. A phase never goes back.
enum { PHASE_NUMBERS, PHASE_MAP, PHASE_BATCH, PHASE_PREFETCH };

static const struct {
    const char *name;
    int phase;
} kinds[] = {
    [BEL_STAGE_SHARD] = {"shard", PHASE_NUMBERS},
    [BEL_STAGE_TAKE] = {"take", PHASE_NUMBERS},
    [BEL_STAGE_SKIP] = {"skip", PHASE_NUMBERS},
    [BEL_STAGE_SHUFFLE] = {"shuffle", PHASE_NUMBERS},
    [BEL_STAGE_REPEAT] = {"repeat", PHASE_NUMBERS},
    [BEL_STAGE_FILTER] = {"filter", PHASE_NUMBERS},
    [BEL_STAGE_MAP] = {"map", PHASE_MAP},
    [BEL_STAGE_BATCH] = {"batch", PHASE_BATCH},
    [BEL_STAGE_PADDED_BATCH] = {"padded_batch", PHASE_BATCH},
    [BEL_STAGE_PREFETCH] = {"prefetch", PHASE_PREFETCH},
};

const char *bel_stage_name(bel_stage_kind kind)
{
    return kinds[kind].name;
}

bool bel_stage_renumbers(bel_stage_kind kind)
{
    return kinds[kind].phase == PHASE_NUMBERS;
}

bel_dataset *bel_dataset_create(bel_source_plan *plan, bel_status *error)
{
    bel_dataset *dataset = bel_xcalloc(1, sizeof *dataset);
    dataset->plan = plan;
    dataset->error = error;
    return dataset;
}

void bel_dataset_destroy(bel_dataset *dataset)
{
    if (dataset == NULL) return;
    if (dataset->plan != NULL) dataset->plan->destroy(dataset->plan);
    for (size_t i = 0; i < dataset->stage_count; i++)
        bel_stage_deinit(&dataset->stages[i]);
    bel_free(dataset->stages);
    bel_status_destroy(dataset->error);
    bel_free(dataset);
}

// --- Stages --------------------------------------------------------------------------------------

bel_stage bel_stage_copy(const bel_stage *stage)
{
    bel_stage copy = *stage;
    size_t count = (size_t)stage->name_count;
    copy.names = count == 0 ? NULL : bel_xcalloc(count, sizeof *copy.names);
    for (size_t i = 0; i < count; i++)
        copy.names[i] = bel_xstrdup(stage->names[i]);
    copy.shapes = NULL;
    if (stage->shapes != NULL) {
        copy.shapes = bel_xcalloc(count, sizeof *copy.shapes);
        memcpy(copy.shapes, stage->shapes, count * sizeof *copy.shapes);
    }
    return copy;
}

void bel_stage_deinit(bel_stage *stage)
{
    for (int i = 0; i < stage->name_count; i++)
        bel_free(stage->names[i]);
    bel_free(stage->names);
    bel_free(stage->shapes);
}

// Why a stage of this kind cannot follow the ones before it, or NULL.
static bel_status *check_order(const bel_dataset *dataset, bel_stage_kind kind)
{
    const char *name = kinds[kind].name;
    for (size_t i = 0; i < dataset->stage_count; i++) {
        bel_stage_kind before = dataset->stages[i].kind;
        bool late = kinds[before].phase > kinds[kind].phase;
        bool twice = kinds[before].phase == kinds[kind].phase && kinds[kind].phase >= PHASE_BATCH;
        if (late) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "dataset: %s must come before %s (first shard, take, skip, filter, "
                           "shuffle, repeat; then map; then batch; then prefetch)",
                           name, kinds[before].name);
        }
        if (twice) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "dataset: %s follows %s, expected only one of them", name,
                           kinds[before].name);
        }
        bool reorders = before == BEL_STAGE_SHUFFLE || before == BEL_STAGE_REPEAT;
        if (kind == BEL_STAGE_FILTER && reorders) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "dataset: filter must come before %s (it runs once over all records, "
                           "while %s depends on the epoch)",
                           kinds[before].name, kinds[before].name);
        }
    }
    return NULL;
}

// Adds a copy of the stage. `fault` says what is wrong with its arguments, or is NULL.
static void add_stage(bel_dataset *dataset, const bel_stage *stage, bel_status *fault)
{
    bel_status *error = dataset->error;
    if (error == NULL) error = check_order(dataset, stage->kind);
    if (error == NULL) {
        error = fault;
        fault = NULL;
    }
    dataset->error = error;
    bel_status_ignore(fault); // an earlier mistake is reported instead
    if (error != NULL) return;
    dataset->stages = bel_xgrow(dataset->stages, &dataset->stage_capacity, dataset->stage_count + 1,
                                sizeof *dataset->stages);
    dataset->stages[dataset->stage_count++] = bel_stage_copy(stage);
}

static bel_status *check_at_least(int64_t value, int64_t least, const char *stage, const char *what)
{
    if (value >= least) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: %s expects %s of at least %lld, got %lld", stage,
                   what, (long long)least, (long long)value);
}

void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index)
{
    bel_status *fault = check_at_least(count, 1, "shard", "a count");
    if (fault == NULL && (index < 0 || index >= count)) {
        fault =
            BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: shard expects an index in [0, %lld), got %lld",
                    (long long)count, (long long)index);
    }
    bel_stage stage = {.kind = BEL_STAGE_SHARD, .count = count, .index = index};
    add_stage(dataset, &stage, fault);
}

void bel_dataset_take(bel_dataset *dataset, int64_t count)
{
    bel_stage stage = {.kind = BEL_STAGE_TAKE, .count = count};
    add_stage(dataset, &stage, check_at_least(count, 0, "take", "a count"));
}

void bel_dataset_skip(bel_dataset *dataset, int64_t count)
{
    bel_stage stage = {.kind = BEL_STAGE_SKIP, .count = count};
    add_stage(dataset, &stage, check_at_least(count, 0, "skip", "a count"));
}

void bel_dataset_shuffle(bel_dataset *dataset, int64_t buffer_size, uint64_t seed)
{
    bel_stage stage = {.kind = BEL_STAGE_SHUFFLE, .count = buffer_size, .seed = seed};
    add_stage(dataset, &stage, check_at_least(buffer_size, 0, "shuffle", "a buffer size"));
}

void bel_dataset_repeat(bel_dataset *dataset, int64_t count)
{
    bel_stage stage = {.kind = BEL_STAGE_REPEAT, .count = count};
    bel_status *fault = count == BEL_REPEAT_FOREVER
                            ? NULL
                            : check_at_least(count, 1, "repeat", "BEL_REPEAT_FOREVER or a count");
    add_stage(dataset, &stage, fault);
}

void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user)
{
    bel_stage stage = {.kind = BEL_STAGE_FILTER, .keep = keep, .user = user};
    add_stage(dataset, &stage,
              keep != NULL ? NULL
                           : BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: filter got no function"));
}

void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user, const char *const *drop)
{
    bel_stage stage = {.kind = BEL_STAGE_MAP, .map = map, .user = user};
    while (drop != NULL && drop[stage.name_count] != NULL)
        stage.name_count++;
    stage.names = bel_xcalloc((size_t)stage.name_count, sizeof *stage.names);
    for (int i = 0; i < stage.name_count; i++)
        stage.names[i] = bel_xstrdup(drop[i]);
    add_stage(dataset, &stage,
              map != NULL ? NULL : BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: map got no function"));
    bel_stage_deinit(&stage);
}

void bel_dataset_batch(bel_dataset *dataset, int64_t batch_size)
{
    bel_stage stage = {.kind = BEL_STAGE_BATCH, .count = batch_size};
    add_stage(dataset, &stage, check_at_least(batch_size, 1, "batch", "a batch size"));
}

void bel_dataset_padded_batch(bel_dataset *dataset, int64_t batch_size,
                              const bel_padded_shape *padded_shapes, int shape_count)
{
    bel_stage stage = {.kind = BEL_STAGE_PADDED_BATCH, .count = batch_size};
    bel_status *fault = check_at_least(batch_size, 1, "padded_batch", "a batch size");
    stage.name_count = shape_count > 0 ? shape_count : 0;
    size_t count = (size_t)stage.name_count;
    stage.names = bel_xcalloc(count, sizeof *stage.names);
    stage.shapes = bel_xcalloc(count, sizeof *stage.shapes);
    for (size_t i = 0; i < count; i++) {
        stage.names[i] = bel_xstrdup(padded_shapes[i].field);
        stage.shapes[i] = padded_shapes[i].shape;
    }
    add_stage(dataset, &stage, fault);
    bel_stage_deinit(&stage);
}

void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count)
{
    bel_status *fault = check_at_least(depth, 0, "prefetch", "a depth");
    if (fault == NULL && depth > 0) {
        fault = check_at_least(thread_count, 1, "prefetch", "a thread count");
    }
    bel_stage stage = {.kind = BEL_STAGE_PREFETCH, .count = depth, .index = thread_count};
    add_stage(dataset, &stage, fault);
}
