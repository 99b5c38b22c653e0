// Values of replicas for another number of replicas than the checkpoint has: each begins with the
// checkpoint's aggregate (belfry/graph.h). Sums are in double, replica by replica, so they depend
// only on the checkpoint.
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/checkpoint.h"

// Conversion of a tensor of the checkpoint to values of replicas.
typedef struct conversion {
    const char *name;
    bel_variable_kind kind;
    bel_shape there;  // shape in the checkpoint
    int64_t rows;     // leading dimension of `there`; 1: all replicas shared it
    int64_t replicas; // replicas now
    int64_t elements; // elements of a replica's value
} conversion;

static bool is_rest(const bel_shape *rest, const bel_shape *all)
{
    bel_shape tail = {.rank = all->rank - 1};
    memcpy(tail.dims, all->dims + 1, (size_t)tail.rank * sizeof *tail.dims);
    return bel_shape_equal(rest, &tail);
}

// Returns false if the shapes are unrelated.
static bool find_conversion(conversion *c, const bel_shape *here)
{
    c->replicas = here->dims[0];
    c->elements = bel_shape_elements(here) / c->replicas;
    c->rows = 1;
    if (is_rest(&c->there, here)) return true;
    bel_shape other = *here;
    other.dims[0] = c->rows = c->there.rank > 0 ? c->there.dims[0] : 0;
    return bel_shape_equal(&c->there, &other);
}

// Computes one replica's value.
static bel_status *convert(const bel_ckpt_reader *reader, const conversion *c, float *row,
                           double *sums, float *out)
{
    int64_t rows = c->kind == BEL_VARIABLE_REPLICA_FIRST ? 1 : c->rows;
    double divisor = c->kind == BEL_VARIABLE_REPLICA_SUM ? (double)c->replicas : (double)rows;
    for (int64_t r = 0; r < rows; r++) {
        BEL_TRY(bel_ckpt_read(reader, c->name, BEL_DTYPE_F32, &c->there, r * c->elements,
                              c->elements, row));
        for (int64_t i = 0; i < c->elements; i++)
            sums[i] += (double)row[i];
    }
    for (int64_t i = 0; i < c->elements; i++)
        out[i] = (float)(sums[i] / divisor);
    return NULL;
}

// Writes elements [first, first + count) of the endlessly repeated value.
static void replicas_repeat(const float *value, int64_t elements, int64_t first, int64_t count,
                            float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = value[(first + i) % elements];
}

bel_status *bel_ckpt_read_replicas(const bel_ckpt_reader *reader, const char *name,
                                   bel_variable_kind kind, const bel_shape *shape, int64_t first,
                                   int64_t count, float *out)
{
    conversion c = {.name = name, .kind = kind};
    int index = bel_ckpt_find(reader, name);
    bel_dtype dtype = BEL_DTYPE_F32;
    const char *unused;
    if (index >= 0) bel_ckpt_tensor(reader, index, &unused, &dtype, &c.there);
    if (index < 0 || dtype != BEL_DTYPE_F32 || bel_shape_equal(&c.there, shape) ||
        !find_conversion(&c, shape))
        return bel_ckpt_read(reader, name, BEL_DTYPE_F32, shape, first, count, out);
    if (kind == BEL_VARIABLE_REPLICA && c.rows > 1) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "checkpoint %s: variable \"%s\" has a value for each of %lld replicas, "
                       "which are not aggregated, and there are %lld replicas now",
                       bel_ckpt_folder(reader), name, (long long)c.rows, (long long)c.replicas);
    }
    size_t elements = (size_t)c.elements;
    float *row = bel_xcalloc(2 * elements, sizeof *row);
    double *sums = bel_xcalloc(elements, sizeof *sums);
    bel_status *status = convert(reader, &c, row, sums, row + elements);
    if (status == NULL) replicas_repeat(row + elements, c.elements, first, count, out);
    bel_free(row);
    bel_free(sums);
    return status;
}
