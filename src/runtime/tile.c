// One tile of an instruction, with the tasks shared by both executors: publishing an output after
// its last writer, and naming the node that met bad data. An output whose kernel writes in order
// (tile_elements) is published tile by tile, so that a report can leave while the rest is computed.
// Every other output is published as a whole. Each element is published exactly once.
#include "runtime/instance_inner.h"

void bel_instance_run_tile(const bel_instance *instance, const bel_instance_run_args *args,
                           int call, int64_t tile)
{
    const bel_kernel_call *bound = &instance->calls[call];
    bound->run(bound, tile);
    int output = instance->tile_outputs[call];
    if (output < 0 || args->publish == NULL) return;
    int64_t first = tile * bound->tile_elements;
    int64_t left = bel_shape_elements(&bound->outputs[0].shape) - first;
    args->publish(args->publish_context, output, first,
                  left < bound->tile_elements ? left : bound->tile_elements);
}

void bel_instance_publish(const bel_instance *instance, const bel_instance_run_args *args, int end,
                          int *next)
{
    for (; *next < instance->publication_count && instance->publications[*next].call < end;
         ++*next) {
        int output = instance->publications[*next].output;
        const bel_shape *shape = &instance->program->outputs[output].tensor.shape;
        if (args->publish == NULL) continue;
        args->publish(args->publish_context, output, 0, bel_shape_elements(shape));
    }
}

bel_status *bel_instance_data_error(const bel_program *program, bel_run_context *context)
{
    int error = atomic_load(&context->error);
    if (error == 0) return NULL;
    return BEL_ERR(BEL_OUT_OF_RANGE, "%s: index, label or length %lld is out of range [%lld, %lld)",
                   program->calls[error - 1].name, (long long)context->bad_value,
                   (long long)context->bad_low, (long long)context->bad_limit);
}
