// Datasets made of datasets. The inner datasets are copied into the new one and then destroyed,
// with their errors; the first error becomes the new dataset's. Their stages apply before the join.
// A batch stage cannot be among them: positions of a join are those of single records.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "input/dataset/dataset_build.h"
#include "input/order/sampling.h"

// Checks a dataset that is to be a part of another.
static bel_status *check_part(const char *kind, bel_dataset *dataset, int index)
{
    if (dataset == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: dataset %d is NULL", kind, index);
    }
    if (dataset->status != NULL) {
        return BEL_ERR(bel_status_code(dataset->status), "%s: dataset %d: %s", kind, index,
                       bel_status_message(dataset->status));
    }
    if (dataset->phase == BEL_PHASE_BATCHED) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: dataset %d has a batch stage; batch what comes out instead", kind,
                       index);
    }
    if (!dataset->bucketed) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: dataset %d has a bucket_by_length; it belongs where the batch stage is",
                   kind, index);
}

static bel_status *check_parts(const char *kind, bel_dataset *const *datasets, int count)
{
    if (datasets == NULL || count < 1 || count > BEL_SAMPLING_MAX_DATASETS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected 1..%d datasets, got %d", kind,
                       BEL_SAMPLING_MAX_DATASETS, datasets == NULL ? 0 : count);
    }
    for (int i = 0; i < count; i++)
        BEL_TRY(check_part(kind, datasets[i], i));
    return NULL;
}

// Frees a dataset that is named twice only once.
static void destroy_parts(bel_dataset *const *datasets, int count)
{
    for (int i = 0; datasets != NULL && i < count; i++) {
        int first = 0;
        while (datasets[first] != datasets[i])
            first++;
        if (first == i) bel_dataset_destroy(datasets[i]);
    }
}

// Creates the dataset that `source` makes of the parts, or one with the error in `status`.
static bel_dataset *join(const char *kind, bel_dataset *const *datasets, int count,
                         bel_source_description source, bel_status *status)
{
    if (status == NULL) status = check_parts(kind, datasets, count);
    bel_description *inner = NULL;
    bool reordered = source.kind == BEL_SOURCE_SAMPLE;
    if (status == NULL) {
        inner = bel_xcalloc((size_t)count, sizeof *inner);
        for (int i = 0; i < count; i++) {
            inner[i] = datasets[i]->description;
            reordered = reordered || datasets[i]->reordered;
        }
    }
    source.inner = inner;
    source.inner_count = status == NULL ? count : 0;
    bel_dataset *dataset = bel_dataset_create(&source, status);
    dataset->reordered = dataset->varies = reordered;
    for (int i = 0; i < source.inner_count; i++)
        bel_dataset_labels(dataset, inner[i].labels, inner[i].label_count);
    bel_free(inner);
    destroy_parts(datasets, count);
    return dataset;
}

bel_dataset *bel_dataset_concatenate(bel_dataset *const *datasets, int count)
{
    return join("concatenate", datasets, count,
                (bel_source_description){.kind = BEL_SOURCE_CONCATENATE}, NULL);
}

bel_dataset *bel_dataset_zip(bel_dataset *const *datasets, int count)
{
    return join("zip", datasets, count, (bel_source_description){.kind = BEL_SOURCE_ZIP}, NULL);
}

bel_dataset *bel_dataset_interleave(bel_dataset *const *datasets, int count, int cycle_length,
                                    int64_t block_length)
{
    bel_status *status = NULL;
    if (cycle_length < 0 || block_length < 1) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "interleave: expected a cycle_length of 0 (all) or more and a "
                         "block_length of at least 1, got %d and %lld",
                         cycle_length, (long long)block_length);
    }
    bel_source_description source = {.kind = BEL_SOURCE_INTERLEAVE,
                                     .interleave = {cycle_length, block_length}};
    return join("interleave", datasets, count, source, status);
}

static bel_status *check_weights(const double *weights, int count, int64_t record_count)
{
    if (record_count < 0 || record_count >= (int64_t)1 << BEL_SAMPLING_POSITION_BITS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "sample: expected a record_count of 0 (all records once) to 2^%d - 1, got "
                       "%lld",
                       BEL_SAMPLING_POSITION_BITS, (long long)record_count);
    }
    double sum = 0;
    for (int i = 0; weights != NULL && i < count; i++) {
        sum += weights[i];
        if (weights[i] > 0 && isfinite(sum)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "sample: expected weights above 0 with a finite sum, got %g for dataset %d",
                       weights[i], i);
    }
    if (weights != NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "sample: expected a weight for each dataset, got NULL");
}

bel_dataset *bel_dataset_sample(bel_dataset *const *datasets, const double *weights, int count,
                                int64_t record_count, uint64_t seed)
{
    bel_source_description source = {.kind = BEL_SOURCE_SAMPLE,
                                     .sample = {weights, record_count, seed}};
    return join("sample", datasets, count, source, check_weights(weights, count, record_count));
}

void bel_dataset_enumerate(bel_dataset *dataset, const char *field, int64_t start)
{
    if (!bel_dataset_may_come(dataset, "enumerate", BEL_PHASE_MAPPED)) return;
    if (field == NULL || field[0] == '\0') {
        bel_dataset_fail(dataset, BEL_ERR(BEL_INVALID_ARGUMENT,
                                          "enumerate: expected the name of a field, got none"));
        return;
    }
    bel_source_description source = {.kind = BEL_SOURCE_ENUMERATE};
    source.enumerate.field = bel_arena_strdup(dataset->arena, field);
    source.enumerate.start = start;
    bel_dataset_wrap(dataset, source);
}

void bel_dataset_window(bel_dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                        bool drop_remainder)
{
    if (!bel_dataset_may_come(dataset, "window", BEL_PHASE_MAPPED)) return;
    if (shift == 0) shift = size;
    bool fits = size >= 1 && size <= INT32_MAX && shift >= 1 && shift <= INT32_MAX && stride >= 1 &&
                stride <= INT32_MAX;
    if (!fits) {
        bel_dataset_fail(dataset,
                         BEL_ERR(BEL_INVALID_ARGUMENT,
                                 "window: expected a size, shift and stride in 1..%d, got %lld, "
                                 "%lld and %lld",
                                 INT32_MAX, (long long)size, (long long)shift, (long long)stride));
        return;
    }
    bel_dataset_wrap(dataset, (bel_source_description){
                                  .kind = BEL_SOURCE_WINDOW,
                                  .window = {size, shift, stride, drop_remainder},
                              });
}

void bel_dataset_flat_map(bel_dataset *dataset, bel_flat_count_fn *count, bel_flat_map_fn *map,
                          void *user, const char *const *drop)
{
    if (!bel_dataset_may_come(dataset, "flat_map", BEL_PHASE_MAPPED)) return;
    bel_status *status = NULL;
    if (count == NULL || map == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "flat_map: expected two functions, got NULL");
    } else if (dataset->reordered) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "dataset: expected flat_map before shuffle and repeat, got it after; it "
                         "counts what each record becomes once, when the dataset is opened");
    }
    if (status != NULL) {
        bel_dataset_fail(dataset, status);
        return;
    }
    bel_source_description source = {.kind = BEL_SOURCE_FLAT, .flat = {count, map, user, NULL}};
    source.flat.drop = bel_names_copy(dataset->arena, drop, bel_name_list_length(drop));
    bel_dataset_wrap(dataset, source);
}

void bel_dataset_cache(bel_dataset *dataset, const char *path, int64_t most_bytes)
{
    if (!bel_dataset_may_come(dataset, "cache", BEL_PHASE_MAPPED)) return;
    bel_status *status = NULL;
    if (dataset->reordered) {
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT,
                    "dataset: expected cache before shuffle and repeat, got it after, where it "
                    "would keep the first epoch's order");
    } else if (most_bytes < 0 || (path != NULL && most_bytes > 0) ||
               (path != NULL && path[0] == '\0')) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "cache: expected a path, or NULL and most_bytes of 0 (no limit) or more, "
                         "got %s and %lld",
                         path == NULL ? "NULL" : path, (long long)most_bytes);
    }
    if (status != NULL) {
        bel_dataset_fail(dataset, status);
        return;
    }
    bel_source_description source = {.kind = BEL_SOURCE_CACHE};
    if (path != NULL) source.cache.path = bel_arena_strdup(dataset->arena, path);
    source.cache.most_bytes = most_bytes;
    bel_dataset_wrap(dataset, source);
}
