// 18 numbers, each with a separate mean and deviation, normalized one by one and joined. With the
// pass they are joined first and normalized by two vector operations. One example, and a batch.
// usage: bench_concat_hoist [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "belfry/ops.h"
#include "passes.h"
#include "passes/passes.h"

enum { COLUMNS = 18 };

static bench_graph build(const char *name, bel_shape shape, int runs)
{
    bel_graph *graph = bel_graph_create();
    bel_value *parts[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        char input[16];
        snprintf(input, sizeof input, "x%d", i);
        bel_value *x = bel_input_value(graph, input, BEL_DTYPE_F32, &shape);
        x = bel_sub(graph, x, bel_scalar(graph, BEL_DTYPE_F32, 0.1 * i));
        parts[i] = bel_div(graph, x, bel_scalar(graph, BEL_DTYPE_F32, 1.0 + i));
    }
    bel_value *joined = bel_concat(graph, parts, COLUMNS, shape.rank - 1);
    return (bench_graph){.name = name, .graph = graph, .output = joined, .runs = runs};
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 31;
    bench_graph one = build("18 numbers of one example", BEL_SHAPE(1), 20000);
    bench_graph batch = build("18 numbers, batch of 64", BEL_SHAPE(64, 1), 5000);
    const unsigned concat = 1u << BEL_PASS_CONCAT;
    bench_passes(&one, concat, "concat", "concat_hoist.one.concat", rounds);
    bench_passes(&one, BEL_PASSES_ALL, "passes", "concat_hoist.one.passes", rounds);
    bench_passes(&batch, concat, "concat", "concat_hoist.batch.concat", rounds);
    bench_passes(&batch, BEL_PASSES_ALL, "passes", "concat_hoist.batch.passes", rounds);
    return 0;
}
