// Goes block by block through each tensor. Every rank's values are broadcast, which moves bytes and
// adds nothing, and all ranks add them in the order of ranks. The error is relative to the sum of
// the values' magnitudes, so that cancellation raises no alarm.
#include "ddl/check.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/number.h"
#include "ddl/rounds.h"

enum { BLOCK = 16384 }; // elements

struct bel_ddl_copy {
    char *data; // one tensor after another, each a multiple of BEL_DDL_LINE
    size_t bytes;
};

bel_status *bel_ddl_copy_create(const bel_ddl_call *call, bel_ddl_copy **out_copy)
{
    size_t bytes = bel_ddl_call_bytes(call), at = 0;
    void *data;
    BEL_TRY(bel_pages_create(bytes + 1, false, "copies of tensors", &data));
    bel_ddl_copy *copy = bel_xcalloc(1, sizeof *copy);
    *copy = (bel_ddl_copy){.data = data, .bytes = bytes + 1};
    for (int i = 0; i < call->count; i++) {
        size_t size = bel_tensor_bytes(&call->tensors[i]);
        if (size > 0) memcpy(copy->data + at, call->tensors[i].data, size);
        at += bel_ddl_whole_lines(size);
    }
    *out_copy = copy;
    return NULL;
}

void bel_ddl_copy_destroy(bel_ddl_copy *copy)
{
    if (copy == NULL) return;
    bel_pages_destroy(copy->data, copy->bytes);
    bel_free(copy);
}

// The worst element so far; error: relative to the sum of magnitudes.
typedef struct worst {
    double error, got, expected;
    int tensor;
    int64_t element;
} worst;

typedef struct block {
    const bel_ddl_call *call;
    int tensor;
    int64_t first, count; // elements
    char values[BLOCK * sizeof(double)];
    double sums[BLOCK], magnitudes[BLOCK];
    uint64_t whole[BLOCK]; // integer sums, which wrap around
} block;

static double number_of(bel_dtype dtype, const char *data, int64_t i)
{
    switch (dtype) {
    case BEL_DTYPE_F32: return (double)((const float *)(const void *)data)[i];
    case BEL_DTYPE_F64: return ((const double *)(const void *)data)[i];
    case BEL_DTYPE_I32: return (double)((const int32_t *)(const void *)data)[i];
    default: return (double)((const int64_t *)(const void *)data)[i];
    }
}

static uint64_t whole_of(bel_dtype dtype, const char *data, int64_t i)
{
    if (dtype == BEL_DTYPE_I32) return (uint64_t)(int64_t)((const int32_t *)(const void *)data)[i];
    return ((const uint64_t *)(const void *)data)[i];
}

static bool is_whole(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_I32 || dtype == BEL_DTYPE_I64;
}

// Adds the values of rank `rank`; if it is this rank, they are at `own`.
static bel_status *add_rank(block *b, int rank, const char *own)
{
    const bel_ddl_call *of = b->call;
    bel_dtype dtype = of->tensors[b->tensor].dtype;
    size_t size = bel_dtype_size(dtype);
    bel_tensor values = {dtype, BEL_SHAPE(b->count), b->values};
    bel_ddl_call spread = {.ddl = of->ddl,
                           .name = "check",
                           .tensors = &values,
                           .count = 1,
                           .root = rank,
                           .mode = of->mode};
    if (rank == of->ddl->place.rank)
        memcpy(b->values, own + (size_t)b->first * size, (size_t)b->count * size);
    BEL_TRY(bel_ddl_call_begin(&spread));
    BEL_TRY(bel_ddl_rounds_spread(&spread));
    for (int64_t i = 0; i < b->count; i++) {
        double value = number_of(dtype, b->values, i);
        b->sums[i] += value;
        b->magnitudes[i] += fabs(value);
        if (is_whole(dtype)) b->whole[i] += whole_of(dtype, b->values, i);
    }
    return NULL;
}

// Returns the error of a sum beyond its type's resolution: below the smallest numbers and above the
// largest. Infinite for NaN.
static double distance(bel_dtype dtype, double got, double expected)
{
    bool narrow = dtype == BEL_DTYPE_F32;
    double smallest = narrow ? 0x1p-149 : 0x1p-1074;
    if (narrow && fabs(expected) > (double)FLT_MAX) expected = (double)(float)expected;
    if (got == expected || (isnan(got) && isnan(expected))) return 0;
    double off = fabs(got - expected) - smallest;
    return isnan(off) ? INFINITY : off > 0 ? off : 0;
}

static void check_compare(const block *b, worst *out)
{
    const bel_tensor *t = &b->call->tensors[b->tensor];
    uint64_t bits = t->dtype == BEL_DTYPE_I32 ? UINT32_MAX : UINT64_MAX;
    for (int64_t i = 0; i < b->count; i++) {
        double got = number_of(t->dtype, t->data, b->first + i), error;
        double expected = b->sums[i] / b->call->divisor;
        if (is_whole(t->dtype)) {
            uint64_t sum = whole_of(t->dtype, t->data, b->first + i);
            error = ((sum ^ b->whole[i]) & bits) == 0 ? 0 : INFINITY;
        } else {
            double magnitude = b->magnitudes[i] / b->call->divisor;
            double off = distance(t->dtype, got, expected);
            error = off == 0 ? 0 : off / magnitude;
            if (isnan(error)) error = INFINITY;
        }
        if (error > out->error) *out = (worst){error, got, expected, b->tensor, b->first + i};
    }
}

static bel_status *check_tensor(block *b, const char *own, worst *out)
{
    int64_t n = bel_shape_elements(&b->call->tensors[b->tensor].shape);
    for (b->first = 0; b->first < n; b->first += BLOCK) {
        b->count = n - b->first < BLOCK ? n - b->first : BLOCK;
        memset(b->sums, 0, sizeof b->sums);
        memset(b->magnitudes, 0, sizeof b->magnitudes);
        memset(b->whole, 0, sizeof b->whole);
        for (int r = 0; r < b->call->ddl->place.size; r++)
            BEL_TRY(add_rank(b, r, own));
        check_compare(b, out);
    }
    return NULL;
}

bel_status *bel_ddl_check_sums(const bel_ddl_call *call, const bel_ddl_copy *copy, double tolerance)
{
    block *b = bel_xcalloc(1, sizeof *b);
    worst found = {0};
    size_t at = 0;
    bel_status *status = NULL;
    b->call = call;
    for (b->tensor = 0; b->tensor < call->count && status == NULL; b->tensor++) {
        status = check_tensor(b, copy->data + at, &found);
        at += bel_ddl_whole_lines(bel_tensor_bytes(&call->tensors[b->tensor]));
    }
    bel_free(b);
    if (status != NULL || found.error <= tolerance) return status;
    return BEL_ERR(BEL_DATA_LOSS,
                   "rank %d, %s, tensor %d of %d, element %lld: expected %.9g within %g of its "
                   "terms' magnitudes, got %.9g: the largest error, %g of them",
                   call->ddl->place.rank, call->name, found.tensor, call->count,
                   (long long)found.element, found.expected, tolerance, found.got, found.error);
}
