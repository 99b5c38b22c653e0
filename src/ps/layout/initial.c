// Initial values from a counter-based generator. An element's number depends only on its index in
// the variable, and the key on the seed and the variable's name. So other variables, their order
// and the cuts make no difference. An orthogonal matrix is the exception: it is computed as one
// matrix, in double, with sums in a fixed order, and takes the memory for that.
#include "ps/layout/initial.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/real.h"
#include "base/rng.h"

// Inputs and outputs of one unit of a kernel [in, out], or of a convolution's weights [out, in,
// window…], whose window counts on both sides.
static void fans(const bel_shape *shape, double *out_in, double *out_out)
{
    double window = 1;
    bool convolution = shape->rank > 2;
    for (int32_t i = 2; i < shape->rank; i++)
        window *= (double)shape->dims[i];
    int64_t first = shape->rank > 0 ? shape->dims[0] : 1;
    int64_t second = shape->rank > 1 ? shape->dims[1] : first;
    *out_in = window * (double)(convolution ? second : first);
    *out_out = window * (double)(convolution ? first : second);
}

static void fill_constant(float *values, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)value;
}

// Fills four elements from each block of random words.
static void fill_uniform(float *values, int64_t count, double limit, bel_rng_key key)
{
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < count; j++)
            values[i + j] = (float)((2.0 * (double)bel_rng_unit(words[j]) - 1.0) * limit);
    }
}

// Fills two elements from each pair.
static void fill_normal(float *values, int64_t count, double deviation, bel_rng_key key)
{
    for (int64_t i = 0; i < count; i += 2) {
        double normal[2];
        bel_rng_normal_pair(key, 0, (uint64_t)i / 2, normal);
        for (int64_t j = 0; j < 2 && i + j < count; j++)
            values[i + j] = (float)(deviation * normal[j]);
    }
}

// Redraws values beyond two deviations.
static void fill_truncated(float *values, int64_t count, double deviation, bel_rng_key key)
{
    for (int64_t i = 0; i < count; i++) {
        double normal[2];
        uint64_t draw = 0;
        do {
            bel_rng_normal_pair(key, draw++, (uint64_t)i / 2, normal); // independent by draw
        } while (fabs(normal[i % 2]) > 2);
        values[i] = (float)(deviation * normal[i % 2]);
    }
}

// --- Orthogonal ----------------------------------------------------------------------------------

// Dot product over 8 lanes, which are added in order.
static double initial_dot(const double *a, const double *b, int64_t n)
{
    enum { LANES = 8 };
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// column -= factor (v · column) v
static void reflect(const double *v, double factor, double *column, int64_t n)
{
    double step = factor * initial_dot(v, column, n);
    for (int64_t i = 0; i < n; i++)
        column[i] -= step * v[i];
}

// QR decomposition A = Q R by Householder reflections (Golub & Van Loan 2013, section 5.2). A has
// its columns, [long_side] each, one after the other. Overwrites A with Q, whose columns take the
// signs of R's diagonal: so Q is uniformly distributed over all orthogonal matrices if A is normal
// (Mezzadri 2007). `scratch` [2 · short side]: factors and signs.
static void orthogonalize(double *a, int64_t long_side, int64_t short_side, double *scratch)
{
    double *factors = scratch, *signs = scratch + short_side;
    for (int64_t k = 0; k < short_side; k++) { // the reflection's v is in column k from k on
        double *v = a + k * long_side + k;
        int64_t n = long_side - k;
        double norm = sqrt(initial_dot(v, v, n)), head = v[0];
        signs[k] = head < 0 ? 1 : -1; // sign of R's diagonal, -sign(head) · norm
        v[0] = head < 0 ? head - norm : head + norm;
        double square = initial_dot(v, v, n);
        factors[k] = square > 0 ? 2 / square : 0;
        for (int64_t j = k + 1; j < short_side; j++)
            reflect(v, factors[k], v + (j - k) * long_side, n);
    }
    for (int64_t k = short_side; k-- > 0;) { // reflect the unit's columns, from the last on
        double *v = a + k * long_side + k;
        int64_t n = long_side - k;
        for (int64_t j = k + 1; j < short_side; j++)
            reflect(v, factors[k], v + (j - k) * long_side, n);
        double step = factors[k] * v[0];
        for (int64_t i = 0; i < n; i++)
            v[i] *= -step;
        v[0] += 1;
        memset(v - k, 0, (size_t)k * sizeof *v);
    }
    for (int64_t k = 0; k < short_side; k++)
        for (int64_t i = 0; i < long_side; i++)
            a[k * long_side + i] *= signs[k];
}

// Fills a matrix of the first dimension and the product of all others.
static bel_status *fill_orthogonal(float *values, const bel_layout_variable *variable, double gain,
                                   bel_rng_key key)
{
    int64_t rows = variable->shape.rank > 0 ? variable->shape.dims[0] : 1;
    int64_t columns = variable->elements / rows;
    int64_t long_side = rows > columns ? rows : columns,
            short_side = variable->elements / long_side;
    size_t bytes = (size_t)(variable->elements + 2 * short_side) * sizeof(double);
    void *memory;
    BEL_TRY(bel_pages_create(bytes, false, "an orthogonal matrix", &memory));
    double *a = memory;
    for (int64_t i = 0; i < variable->elements; i += 2) {
        double normal[2];
        bel_rng_normal_pair(key, 0, (uint64_t)i / 2, normal);
        a[i] = normal[0];
        a[i + 1] = normal[1]; // may be scratch's first element
    }
    orthogonalize(a, long_side, short_side, a + variable->elements);
    for (int64_t i = 0; i < variable->elements; i++) {
        int64_t row = i / columns, column = i % columns;
        int64_t at = rows >= columns ? column * rows + row : row * columns + column;
        values[i] = (float)(gain * a[at]);
    }
    bel_pages_destroy(memory, bytes);
    return NULL;
}

// --- Choice --------------------------------------------------------------------------------------

// Fills one value, shared or a replica's.
static bel_status *initial_fill(const bel_layout_variable *variable, uint64_t seed, float *values)
{
    bel_rng_key key =
        bel_rng_key_make(seed, "init", bel_hash64(variable->name, strlen(variable->name)));
    int64_t count = variable->elements;
    double in, out, value = variable->initializer.value;
    fans(&variable->shape, &in, &out);
    switch (variable->initializer.kind) {
    case BEL_INIT_ZEROS: fill_constant(values, count, 0); break;
    case BEL_INIT_ONES: fill_constant(values, count, 1); break;
    case BEL_INIT_CONSTANT: fill_constant(values, count, value); break;
    case BEL_INIT_UNIFORM: fill_uniform(values, count, value, key); break;
    case BEL_INIT_NORMAL: fill_normal(values, count, value, key); break;
    case BEL_INIT_TRUNCATED_NORMAL: fill_truncated(values, count, value, key); break;
    case BEL_INIT_GLOROT_UNIFORM: fill_uniform(values, count, sqrt(6.0 / (in + out)), key); break;
    case BEL_INIT_GLOROT_NORMAL: fill_normal(values, count, sqrt(2.0 / (in + out)), key); break;
    case BEL_INIT_HE_UNIFORM: fill_uniform(values, count, sqrt(6.0 / in), key); break;
    case BEL_INIT_HE_NORMAL: fill_normal(values, count, sqrt(2.0 / in), key); break;
    case BEL_INIT_ORTHOGONAL: return fill_orthogonal(values, variable, value == 0 ? 1 : value, key);
    }
    return NULL;
}

// The values of all replicas begin alike, equal to one value without the axis of replicas.
bel_status *bel_initial_values(const bel_layout_variable *variable, uint64_t seed, float *values)
{
    bel_layout_variable one = *variable;
    if (variable->own_elements > 0) {
        one.elements = variable->own_elements;
        one.shape.rank--;
        memmove(one.shape.dims, one.shape.dims + 1,
                (size_t)one.shape.rank * sizeof *one.shape.dims);
    }
    BEL_TRY(initial_fill(&one, seed, values));
    for (int64_t first = one.elements; first < variable->elements; first += one.elements)
        memcpy(values + first, values, (size_t)one.elements * sizeof *values);
    return NULL;
}
