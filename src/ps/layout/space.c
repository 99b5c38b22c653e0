// Memory of the parameter space, and initial values.
#include "ps/layout/space.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

bel_status *bel_space_array(const bel_layout *layout, const char *what, float **out_array)
{
    void *memory;
    BEL_TRY(bel_pages_create((size_t)layout->size * sizeof(float), false, what, &memory));
    *out_array = memory;
    return NULL;
}

void bel_space_free_array(const bel_layout *layout, float *array)
{
    bel_pages_destroy(array, (size_t)layout->size * sizeof(float));
}

bel_status *bel_space_arrays(const bel_layout *layout, const char *what, int count,
                             float ***out_arrays)
{
    float **arrays = bel_xcalloc((size_t)count, sizeof *arrays);
    for (int i = 0; i < count; i++) {
        bel_status *status = bel_space_array(layout, what, &arrays[i]);
        if (status == NULL) {
            memset(arrays[i], 0, (size_t)layout->size * sizeof(float));
            continue;
        }
        bel_space_free_arrays(layout, arrays, count);
        return status;
    }
    *out_arrays = arrays;
    return NULL;
}

void bel_space_free_arrays(const bel_layout *layout, float **arrays, int count)
{
    for (int i = 0; arrays != NULL && i < count; i++)
        bel_space_free_array(layout, arrays[i]);
    bel_free(arrays);
}

size_t bel_space_bytes(const bel_layout *layout)
{
    size_t page = BEL_LAYOUT_PAGE * sizeof(float);
    return ((size_t)layout->size * sizeof(float) + page - 1) / page * page;
}

bel_space *bel_space_over(const bel_layout *layout, float *const buffers[2])
{
    bel_space *space = bel_xcalloc(1, sizeof *space);
    space->layout = layout;
    space->current = bel_xcalloc((size_t)layout->chunk_count, sizeof *space->current);
    space->buffers[0] = buffers[0];
    space->buffers[1] = buffers[1];
    return space;
}

bel_status *bel_space_create(const bel_layout *layout, bel_space **out_space)
{
    bel_space *space = bel_space_over(layout, (float *const[2]){NULL, NULL});
    space->owns_buffers = true;
    for (int i = 0; i < 2; i++) {
        bel_status *status = bel_space_array(layout, "parameters", &space->buffers[i]);
        if (status != NULL) {
            bel_space_destroy(space);
            return status;
        }
    }
    *out_space = space;
    return NULL;
}

void bel_space_destroy(bel_space *space)
{
    if (space == NULL) return;
    for (int i = 0; i < 2 && space->owns_buffers; i++)
        bel_space_free_array(space->layout, space->buffers[i]);
    bel_free(space->current);
    bel_free(space);
}

const float *bel_space_variable(const bel_space *space, int variable)
{
    const bel_layout_variable *v = &space->layout->variables[variable];
    unsigned char current =
        atomic_load_explicit(&space->current[v->first_chunk], memory_order_acquire);
    return space->buffers[current] + v->offset;
}

// Inputs and outputs that meet in one unit of a kernel [in, out] or of a convolution's weights
// [out, in, window…], whose window counts on both sides.
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

static void fill_uniform(float *values, int64_t count, double limit, bel_rng_key key)
{
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < count; j++)
            values[i + j] = (float)((2.0 * (double)bel_rng_unit(words[j]) - 1.0) * limit);
    }
}

// Box-Muller: two uniform numbers give two normal ones.
static void fill_normal(float *values, int64_t count, double deviation, bel_rng_key key)
{
    for (int64_t i = 0; i < count; i += 2) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i / 2, words);
        double radius = sqrt(-2.0 * log(((double)words[0] + 1.0) * 0x1p-32));
        double angle = 6.283185307179586 * (double)words[1] * 0x1p-32;
        values[i] = (float)(deviation * radius * cos(angle));
        if (i + 1 < count) values[i + 1] = (float)(deviation * radius * sin(angle));
    }
}

static void initialize_variable(const bel_layout_variable *variable, uint64_t seed, float *values)
{
    bel_rng_key key =
        bel_rng_key_make(seed, "init", bel_hash64(variable->name, strlen(variable->name)));
    double in, out, value = variable->initializer.value;
    fans(&variable->shape, &in, &out);
    switch (variable->initializer.kind) {
    case BEL_INIT_ZEROS: memset(values, 0, (size_t)variable->elements * sizeof *values); break;
    case BEL_INIT_CONSTANT:
        for (int64_t i = 0; i < variable->elements; i++)
            values[i] = (float)value;
        break;
    case BEL_INIT_UNIFORM: fill_uniform(values, variable->elements, value, key); break;
    case BEL_INIT_NORMAL: fill_normal(values, variable->elements, value, key); break;
    case BEL_INIT_GLOROT_UNIFORM:
        fill_uniform(values, variable->elements, sqrt(6.0 / (in + out)), key);
        break;
    case BEL_INIT_HE_NORMAL: fill_normal(values, variable->elements, sqrt(2.0 / in), key); break;
    }
}

void bel_space_initialize(const bel_layout *layout, uint64_t seed, float *values)
{
    for (int v = 0; v < layout->variable_count; v++)
        initialize_variable(&layout->variables[v], seed, values + layout->variables[v].offset);
}
