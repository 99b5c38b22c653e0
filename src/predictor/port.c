// Checks shared by all predictors and learners: ports by name, a tensor against its port, and the
// number of threads. Callers check dimensions that must agree, because that needs all inputs.
#include <string.h>

#include "predictor/predictor.h"

int bel_port_find(const bel_port *ports, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0) return i;
    return -1;
}

// Batches need at least one example, whatever the other open dimensions are.
static bool port_fits(const bel_port *port, const bel_tensor *elements)
{
    const bel_shape *want = &port->shape, *have = &elements->shape;
    if (elements->dtype != port->dtype || have->rank != want->rank) return false;
    for (int32_t d = 0; d < want->rank; d++) {
        int64_t least = want->dims[d] == BEL_DIM_BATCH ? 1 : 0;
        if (want->dims[d] >= 0 ? have->dims[d] != want->dims[d] : have->dims[d] < least)
            return false;
    }
    return true;
}

bel_status *bel_port_check(const char *what, const bel_port *port, const bel_tensor *elements)
{
    bool sound = elements->shape.rank >= 0 && elements->shape.rank <= BEL_MAX_RANK;
    if (!sound || !port_fits(port, elements)) {
        char want[BEL_SHAPE_TEXT], have[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s \"%s\": expected %s %s%s, got %s %s", what,
                       port->name, bel_dtype_name(port->dtype), bel_shape_text(&port->shape, want),
                       bel_shape_elements(&port->shape) < 0 ? " with at least one example" : "",
                       bel_dtype_name(elements->dtype),
                       sound ? bel_shape_text(&elements->shape, have) : "of no rank");
    }
    if (elements->data == NULL && bel_shape_elements(&elements->shape) > 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s \"%s\": it has no elements", what, port->name);
    return NULL;
}

bel_status *bel_check_threads(const char *whose, int threads)
{
    enum { MOST = 1024 };
    if (threads >= 0 && threads <= MOST) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "threads of %s: expected 0 to %d, got %d", whose, MOST,
                   threads);
}
