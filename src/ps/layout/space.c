// Memory of the parameter space, and initial values. Arrays are as large as the whole space in
// every process: untouched pages cost nothing, and offsets are the same everywhere. Gradient ranges
// are written once at the start, so that their pages exist before the first step. A reader's
// acquire of `current` pairs with the release of the pass that changed it (ps/server/pass.c), so a
// thread that sees the number sees the values.
#include "ps/layout/space.h"

#include <string.h>

#include "base/alloc.h"
#include "ps/layout/initial.h"

bel_status *bel_space_array(const bel_layout *layout, const char *what, float **out_array)
{
    void *memory;
    BEL_TRY(bel_pages_create((size_t)layout->size * sizeof(float), false, what, &memory));
    *out_array = memory;
    return NULL;
}

void bel_space_free_array(const bel_layout *layout, float *array)
{
    if (array != NULL) bel_pages_destroy(array, (size_t)layout->size * sizeof(float));
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

bel_status *bel_space_create(const bel_layout *layout, int buffer_count, bel_space **out_space)
{
    bel_space *space = bel_space_over(layout, (float *const[2]){NULL, NULL});
    space->owned_buffers = buffer_count;
    for (int i = 0; i < buffer_count; i++) {
        bel_status *status = bel_space_array(layout, "parameters", &space->buffers[i]);
        if (status != NULL) {
            bel_space_destroy(space);
            return status;
        }
    }
    if (buffer_count == 1) space->buffers[1] = space->buffers[0];
    *out_space = space;
    return NULL;
}

void bel_space_destroy(bel_space *space)
{
    if (space == NULL) return;
    for (int i = 0; i < space->owned_buffers; i++)
        bel_space_free_array(space->layout, space->buffers[i]);
    bel_free(space->current);
    bel_free(space);
}

const float *bel_space_of_chunk(const bel_space *space, int chunk)
{
    return space->buffers[atomic_load_explicit(&space->current[chunk], memory_order_acquire)];
}

const float *bel_space_variable(const bel_space *space, int variable)
{
    const bel_layout_variable *v = &space->layout->variables[variable];
    return bel_space_of_chunk(space, v->first_chunk) + v->offset;
}

bel_status *bel_space_initialize(const bel_layout *layout, uint64_t seed, float *values)
{
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        BEL_TRY_CTX(bel_initial_values(variable, seed, values + variable->offset),
                    "variable \"%s\"", variable->name);
    }
    return NULL;
}
