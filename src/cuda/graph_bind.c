// Binding of an instance to a GPU: its streams and events, its launches with all their arguments,
// the segments that they are cut into (graph_executor.c), and the process's memory that the GPU
// copies to and from.
#include <string.h>

#include "base/alloc.h"
#include "cuda/graph_executor.h"
#include "ops/collective.h"

_Static_assert((int)BEL_CUDA_MAX_INPUTS >= (int)BEL_OP_MAX_INPUTS + 1 &&
                   (int)BEL_CUDA_MAX_OUTPUTS >= (int)BEL_OP_MAX_OUTPUTS,
               "the operands of a call");
_Static_assert(sizeof(bel_rng_key) == 2 * sizeof(uint32_t), "keys as kernels read them");

enum { TOGETHER_BYTES = 1 << 20 }; // least size of reports that leave together

static void set_operands(bel_cuda_executor *x)
{
    const bel_instance *instance = x->instance;
    for (int c = 0; c < instance->program->call_count; c++) {
        const bel_kernel_call *call = &instance->calls[c];
        bel_cuda_operands *at = &x->operands[c];
        for (int i = 0; i < call->input_count; i++)
            at->in[i] = call->inputs[i].data;
        for (int i = 0; i < call->output_count; i++)
            at->out[i] = call->outputs[i].data;
        at->work = call->workspace;
        at->run = x->state.address;
        at->call = c;
    }
}

static void drop_graphs(const bel_cuda_executor *x, const bel_cuda_binding *binding)
{
    for (int s = 0; s < x->segment_count && binding->graphs != NULL; s++)
        if (binding->graphs[s] != NULL) x->api->graph_exec_destroy(binding->graphs[s]);
}

static void free_binding(bel_cuda_binding *binding)
{
    bel_free(binding->addresses);
    bel_free(binding->graphs);
    bel_free(binding->ran);
    *binding = (bel_cuda_binding){.addresses = NULL};
}

// The binding of these addresses; else a new one, which replaces the oldest when all are used.
static bel_cuda_binding *find_binding(bel_cuda_executor *x)
{
    size_t bytes = (size_t)x->instance->program->buffer_count * sizeof(void *);
    for (int i = 0; i < BEL_CUDA_MOST_BINDINGS && x->bindings[i].addresses != NULL; i++)
        if (memcmp(x->bindings[i].addresses, x->instance->addresses, bytes) == 0)
            return &x->bindings[i];
    bel_cuda_binding *made = &x->bindings[x->next_binding];
    x->next_binding = (x->next_binding + 1) % BEL_CUDA_MOST_BINDINGS;
    drop_graphs(x, made);
    free_binding(made);
    made->addresses = bel_xmalloc(bytes + 1);
    memcpy(made->addresses, x->instance->addresses, bytes);
    made->graphs = bel_xcalloc((size_t)x->segment_count + 1, sizeof *made->graphs);
    made->ran = bel_xcalloc((size_t)x->segment_count + 1, sizeof *made->ran);
    return made;
}

void bel_cuda_follow_binding(bel_cuda_executor *x)
{
    set_operands(x);
    x->bound = find_binding(x);
}

const bel_cuda_call *bel_cuda_launches(const bel_kernel_call *call)
{
    return bel_op_is_collective(call->op) ? NULL : call->params;
}

static void set_launches(bel_cuda_executor *x)
{
    const bel_program *program = x->instance->program;
    int all = 0;
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = bel_cuda_launches(&program->calls[c].call);
        x->first_launches[c] = all;
        if (made != NULL) all += made->count;
    }
    x->first_launches[program->call_count] = all;
    x->launches = bel_xcalloc((size_t)all + 1, sizeof *x->launches);
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = bel_cuda_launches(&program->calls[c].call);
        for (int l = 0; made != NULL && l < made->count; l++) {
            x->launches[x->first_launches[c] + l] = (bel_cuda_bound_launch){&made->launches[l], c};
        }
    }
}

static size_t bind_take(size_t *bytes, const bel_tensor *tensor)
{
    size_t at = *bytes;
    *bytes += (bel_tensor_bytes(tensor) + 63) / 64 * 64;
    return at;
}

// Lays out the staged memory, which the GPU copies and the caller reads or writes: the state,
// results, and exchanged values.
static void lay_out(bel_cuda_executor *x)
{
    const bel_program *program = x->instance->program;
    size_t calls = (size_t)program->call_count;
    x->state_bytes = sizeof(bel_cuda_state) + calls * sizeof(bel_rng_key);
    x->staged.bytes = (x->state_bytes + 63) / 64 * 64;
    x->staged.results = bel_xcalloc((size_t)program->output_count + 1, sizeof(size_t));
    x->staged.exchanged_in = bel_xcalloc(calls + 1, sizeof(size_t));
    x->staged.exchanged_out = bel_xcalloc(calls + 1, sizeof(size_t));
    for (int o = 0; o < program->output_count; o++)
        x->staged.results[o] = program->outputs[o].external
                                   ? SIZE_MAX
                                   : bind_take(&x->staged.bytes, &program->outputs[o].tensor);
    for (int e = 0; e < program->exchange_count; e++)
        for (int c = program->exchanges[e].first_call; c < program->exchanges[e].end_call; c++) {
            x->staged.exchanged_in[c] =
                bind_take(&x->staged.bytes, &program->calls[c].call.inputs[0]);
            x->staged.exchanged_out[c] =
                bind_take(&x->staged.bytes, &program->calls[c].call.outputs[0]);
        }
}

// A segment ends after the last writer of a report that leaves, and at the end of a part. Reports
// that stay on the GPU do not end a segment.
static void cut_segments(bel_cuda_executor *x)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    bool *ends = bel_xcalloc((size_t)program->call_count + 1, sizeof *ends);
    size_t bytes = 0;
    for (int p = 0; p < instance->publication_count && !program->on_device; p++) {
        const bel_instance_publication *its = &instance->publications[p];
        bytes += bel_tensor_bytes(&program->outputs[its->output].tensor);
        if (bytes < TOGETHER_BYTES) continue;
        ends[its->call + 1] = true;
        bytes = 0;
    }
    for (int e = 0; e < program->exchange_count; e++) {
        ends[program->exchanges[e].first_call] = true;
        ends[program->exchanges[e].end_call] = true;
    }
    ends[bel_program_calls_before(program, program->prologue_groups)] = true;
    ends[program->call_count] = true;
    x->segments = bel_xcalloc((size_t)program->call_count + 1, sizeof *x->segments);
    int first = 0;
    for (int c = 1; c <= program->call_count; c++) {
        if (!ends[c]) continue;
        x->segments[x->segment_count++] = (bel_cuda_segment){.first = first, .end = c};
        first = c;
    }
    if (first == 0)
        x->segments[x->segment_count++] = (bel_cuda_segment){.first = 0}; // without calls
    bel_free(ends);
}

// Lays out the inputs that are copied ahead, one after another.
static void lay_out_ahead(bel_cuda_executor *x)
{
    const bel_program *program = x->instance->program;
    x->ahead.places = bel_xcalloc((size_t)program->buffer_count + 1, sizeof(size_t));
    x->ahead.brought = bel_xcalloc((size_t)program->buffer_count + 1, sizeof(void *));
    for (int b = 0; b < program->buffer_count; b++) {
        if (program->buffers[b].kind != BEL_LOCATION_INPUT) continue;
        x->ahead.places[b] = x->ahead.bytes;
        x->ahead.bytes += (program->buffers[b].size_bytes + 63) / 64 * 64;
    }
}

static bel_status *make_queues(bel_cuda_executor *x)
{
    const bel_cuda_api *api = x->api;
    BEL_TRY(bel_cuda_status(api->stream_create(&x->work, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    BEL_TRY(bel_cuda_status(api->stream_create(&x->out, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    BEL_TRY(bel_cuda_status(api->stream_create(&x->ahead.stream, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    void **const events[] = {&x->done[0], &x->done[1], &x->done[2], &x->ahead.there,
                             &x->ahead.taken};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        BEL_TRY(bel_cuda_status(api->event_create(events[i], BEL_CUDA_EVENT_NO_TIMING),
                                "make an event"));
    x->ready = bel_xcalloc((size_t)x->segment_count + 1, sizeof(void *));
    x->gone = bel_xcalloc((size_t)x->segment_count + 1, sizeof(void *));
    for (int s = 0; s < x->segment_count; s++) {
        BEL_TRY(bel_cuda_status(api->event_create(&x->ready[s], BEL_CUDA_EVENT_NO_TIMING),
                                "make an event"));
        BEL_TRY(bel_cuda_status(api->event_create(&x->gone[s], BEL_CUDA_EVENT_NO_TIMING),
                                "make an event"));
    }
    return bel_cuda_marks_make(&x->marks, api, 3 + 3 * x->segment_count);
}

bel_status *bel_cuda_bind(bel_device *device, bel_instance *instance)
{
    bel_cuda_executor *x = bel_xcalloc(1, sizeof *x);
    size_t calls = (size_t)instance->program->call_count;
    x->device = (bel_cuda_device *)device;
    x->api = x->device->api;
    x->instance = instance;
    instance->on_device = x;
    for (int c = 0; c < instance->program->call_count; c++)
        instance->tile_outputs[c] = -1; // reports leave as a whole
    x->first_launches = bel_xcalloc(calls + 1, sizeof *x->first_launches);
    x->operands = bel_xcalloc(calls + 1, sizeof *x->operands);
    lay_out(x);
    BEL_TRY(bel_cuda_enter(x->device));
    void *staged;
    BEL_TRY(bel_cuda_status(x->api->host_allocate(&staged, x->staged.bytes, BEL_CUDA_HOST_PORTABLE),
                            "allocate memory of the process"));
    x->staged.memory = staged;
    memset(staged, 0, x->staged.bytes);
    x->keys = (bel_rng_key *)(x->staged.memory + sizeof(bel_cuda_state));
    BEL_TRY(device->ops->allocate(device, x->state_bytes, "the state of a run", &x->state));
    set_launches(x);
    lay_out_ahead(x);
    cut_segments(x);
    bel_cuda_follow_binding(x);
    return make_queues(x);
}

// Destroys the driver's objects.
static void give_back(bel_cuda_executor *x)
{
    const bel_cuda_api *api = x->api;
    api->context_set(x->device->context);
    for (int s = 0; s < x->segment_count; s++) {
        if (x->ready != NULL && x->ready[s] != NULL) api->event_destroy(x->ready[s]);
        if (x->gone != NULL && x->gone[s] != NULL) api->event_destroy(x->gone[s]);
    }
    for (int i = 0; i < BEL_CUDA_MOST_BINDINGS; i++)
        drop_graphs(x, &x->bindings[i]);
    void *const events[] = {x->done[0], x->done[1], x->done[2], x->ahead.there, x->ahead.taken};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        if (events[i] != NULL) api->event_destroy(events[i]);
    bel_cuda_marks_free(&x->marks);
    if (x->work != NULL) {
        bel_cuda_forget_stream(x->device, x->work);
        api->stream_destroy(x->work);
    }
    if (x->out != NULL) api->stream_destroy(x->out);
    if (x->ahead.stream != NULL) api->stream_destroy(x->ahead.stream);
    if (x->staged.memory != NULL) api->host_release(x->staged.memory);
}

// The driver may wait for a lost GPU in any call, so then nothing is freed.
void bel_cuda_unbind(bel_instance *instance)
{
    bel_cuda_executor *x = instance->on_device;
    if (x == NULL) return;
    if (!bel_cuda_has_lost_card()) give_back(x);
    x->device->device.ops->release(&x->device->device, &x->state);
    x->device->device.ops->release(&x->device->device, &x->ahead.memory);
    bel_free(x->ahead.places);
    bel_free(x->ahead.brought);
    bel_free(x->staged.results);
    bel_free(x->staged.exchanged_in);
    bel_free(x->staged.exchanged_out);
    bel_free(x->ready);
    bel_free(x->gone);
    for (int i = 0; i < BEL_CUDA_MOST_BINDINGS; i++)
        free_binding(&x->bindings[i]);
    bel_free(x->segments);
    bel_free(x->launches);
    bel_free(x->first_launches);
    bel_free(x->operands);
    bel_free(x);
    instance->on_device = NULL;
}

void *bel_cuda_result(const bel_instance *instance, int output)
{
    const bel_cuda_executor *x = instance->on_device;
    if (instance->program->outputs[output].external) return instance->bound_outputs[output];
    return x->staged.memory + x->staged.results[output];
}

void *bel_cuda_exchanged(const bel_instance *instance, int call, bool output)
{
    const bel_cuda_executor *x = instance->on_device;
    return x->staged.memory +
           (output ? x->staged.exchanged_out[call] : x->staged.exchanged_in[call]);
}
