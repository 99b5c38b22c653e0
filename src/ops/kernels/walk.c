// Merges dimensions, and iterates over all but the last. Dimensions of 1 are dropped. A dimension
// merges with the previous one if, for every tensor, a step of that one is this entire dimension,
// so most broadcasts become one or two loops. Additions update the places; only the start of a tile
// uses division, which lets tiles begin anywhere. Runs are always in row-major order.
#include "ops/kernels/walk.h"

#include <string.h>

bel_walk bel_walk_make(const bel_shape *shape, int64_t steps[][BEL_MAX_RANK], int tensors)
{
    bel_walk walk = {.tensors = tensors};
    for (int32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        int32_t last = walk.rank - 1;
        bool merges = walk.rank > 0;
        for (int k = 0; k < tensors; k++)
            merges = merges && walk.steps[k][last] == steps[k][d] * shape->dims[d];
        if (!merges) {
            last = walk.rank++;
            walk.dims[last] = 1;
        }
        walk.dims[last] *= shape->dims[d];
        for (int k = 0; k < tensors; k++)
            walk.steps[k][last] = steps[k][d];
    }
    return walk;
}

bel_walk bel_walk_broadcast(const bel_shape *shape, const bel_tensor *tensors, int count)
{
    int64_t steps[BEL_WALK_TENSORS][BEL_MAX_RANK] = {{0}};
    for (int k = 0; k < count; k++) {
        const bel_shape *own = &tensors[k].shape;
        int64_t step = 1;
        for (int32_t d = own->rank - 1, to = shape->rank - 1; d >= 0; d--, to--) {
            steps[k][to] = own->dims[d] == 1 ? 0 : step;
            step *= own->dims[d];
        }
    }
    return bel_walk_make(shape, steps, count);
}

// Finds the coordinates of element `at`, and the places of the run's first element.
static void go_to(const bel_walk *walk, int64_t at, int64_t coordinates[BEL_MAX_RANK], bel_run *run)
{
    memset(run->places, 0, sizeof run->places);
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        coordinates[d] = at % walk->dims[d];
        at /= walk->dims[d];
        for (int k = 0; k < walk->tensors; k++)
            run->places[k] += coordinates[d] * walk->steps[k][d];
    }
}

// Moves from the end of a run to the start of the next one: all `coordinates` but the last.
static void next_run(const bel_walk *walk, int64_t coordinates[BEL_MAX_RANK], bel_run *run)
{
    for (int32_t d = walk->rank - 2; d >= 0; d--) {
        for (int k = 0; k < walk->tensors; k++)
            run->places[k] += walk->steps[k][d];
        if (++coordinates[d] < walk->dims[d]) return;
        for (int k = 0; k < walk->tensors; k++)
            run->places[k] -= walk->dims[d] * walk->steps[k][d];
        coordinates[d] = 0;
    }
}

void bel_walk_runs(const bel_walk *walk, int64_t begin, int64_t end, bel_run_fn *run,
                   const void *context)
{
    if (begin >= end) return;
    int32_t last = walk->rank - 1;
    int64_t coordinates[BEL_MAX_RANK] = {0}, length = last >= 0 ? walk->dims[last] : 1;
    bel_run r = {.at = begin};
    for (int k = 0; k < walk->tensors && last >= 0; k++)
        r.steps[k] = walk->steps[k][last];
    go_to(walk, begin, coordinates, &r);
    int64_t into = last >= 0 ? coordinates[last] : 0; // the first run may begin in its middle
    for (; r.at < end; r.at += r.n, into = 0) {
        r.n = length - into < end - r.at ? length - into : end - r.at;
        run(context, &r);
        for (int k = 0; k < walk->tensors; k++) // to the start of this run
            r.places[k] -= into * r.steps[k];
        next_run(walk, coordinates, &r);
    }
}
