// Binding and running. A patch is an operand of a call that holds the address of a caller's buffer.
// Patches are sorted by buffer; binding another address walks those of its buffer. A run is a loop
// over groups of bound calls, without the prologue if that has run with the same variables.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "runtime/device.h"

// --- Binding -------------------------------------------------------------------------------------

// Lists the buffers of one kind.
static bel_instance_bound find_bound(const bel_program *program, bel_location_kind kind)
{
    bel_instance_bound bound = {.count = 0};
    for (int b = 0; b < program->buffer_count; b++) {
        const bel_program_buffer *buffer = &program->buffers[b];
        if (buffer->kind == kind && buffer->index >= bound.count) bound.count = buffer->index + 1;
    }
    bound.buffers = bel_xcalloc((size_t)bound.count, sizeof *bound.buffers);
    for (int i = 0; i < bound.count; i++)
        bound.buffers[i] = -1;
    for (int b = 0; b < program->buffer_count; b++)
        if (program->buffers[b].kind == kind) bound.buffers[program->buffers[b].index] = b;
    return bound;
}

// Sets the address of an operand, which is final for memory of the instance. A buffer that is bound
// later gets a patch, at the end of its list so far.
static void add_operand(bel_instance *instance, int buffer, void **address)
{
    *address = instance->addresses[buffer];
    if (!bel_program_binds(instance->program, buffer)) return;
    instance->patches[instance->first_patches[buffer + 1]++] = address;
}

// Makes room for the patches of each buffer, buffer after buffer. The entry after a buffer's is the
// end of its list so far, and becomes the start of the next list.
static void count_patches(bel_instance *instance)
{
    const bel_program *program = instance->program;
    int *counts = bel_xcalloc((size_t)program->buffer_count + 1, sizeof *counts), all = 0;
    for (int i = 0; i < program->call_count; i++) {
        const bel_program_call *call = &program->calls[i];
        for (int k = 0; k < call->call.input_count; k++)
            counts[call->input_buffers[k]] += bel_program_binds(program, call->input_buffers[k]);
        for (int k = 0; k < call->call.output_count; k++)
            counts[call->output_buffers[k]] += bel_program_binds(program, call->output_buffers[k]);
    }
    instance->first_patches =
        bel_xcalloc((size_t)program->buffer_count + 1, sizeof *instance->first_patches);
    for (int b = 0; b < program->buffer_count; b++) {
        instance->first_patches[b + 1] = all;
        all += counts[b];
    }
    instance->patches = bel_xcalloc((size_t)all, sizeof *instance->patches);
    bel_free(counts);
}

// Copies the calls, with all known addresses, and makes patches for the others.
static void place_calls(bel_instance *instance)
{
    const bel_program *program = instance->program;
    count_patches(instance);
    for (int i = 0; i < program->call_count; i++) {
        const bel_program_call *from = &program->calls[i];
        bel_kernel_call *call = &instance->calls[i];
        *call = from->call;
        for (int k = 0; k < call->input_count; k++)
            add_operand(instance, from->input_buffers[k], &call->inputs[k].data);
        for (int k = 0; k < call->output_count; k++)
            add_operand(instance, from->output_buffers[k], &call->outputs[k].data);
        if (from->workspace >= 0) call->workspace = instance->addresses[from->workspace];
    }
    instance->inputs = find_bound(program, BEL_LOCATION_INPUT);
    instance->variables = find_bound(program, BEL_LOCATION_VARIABLE);
    instance->outputs = find_bound(program, BEL_LOCATION_OUTPUT);
}

// Binds a buffer. True: its address has changed.
static bool instance_bind(bel_instance *instance, const bel_instance_bound *bound, int index,
                          void *data)
{
    int buffer = index < bound->count ? bound->buffers[index] : -1;
    if (buffer < 0) return false;
    bool there = bel_program_binds(instance->program, buffer);
    void **place = there ? &instance->addresses[buffer] : &instance->bound[buffer];
    if (*place == data) return false;
    *place = data;
    if (!there) return true; // a run copies from there
    instance->rebound = instance->program->on_device;
    for (int p = instance->first_patches[buffer]; p < instance->first_patches[buffer + 1]; p++)
        *instance->patches[p] = data;
    return true;
}

// Kernels only read inputs and variables; the view's pointer is mutable because outputs share it.
static void *as_view(const void *data)
{
    union {
        const void *read;
        void *view;
    } pointer = {.read = data};
    return pointer.view;
}

void bel_instance_announce_input(bel_instance *instance, int input, const void *data)
{
    const bel_instance_bound *inputs = &instance->inputs;
    int buffer = input < inputs->count ? inputs->buffers[input] : -1;
    if (buffer >= 0) instance->announced[buffer] = data;
}

void bel_instance_bind_input(bel_instance *instance, int input, const void *data)
{
    (void)instance_bind(instance, &instance->inputs, input, as_view(data));
}

// A variable that moves to another address has other content, so the prologue must run again.
void bel_instance_bind_variable(bel_instance *instance, int variable, const void *data)
{
    if (instance_bind(instance, &instance->variables, variable, as_view(data)))
        instance->settled = false;
}

void bel_instance_bind_output(bel_instance *instance, int output, void *data)
{
    if (instance->bound_outputs != NULL) instance->bound_outputs[output] = data;
    if (bel_program_binds_outputs(instance->program))
        (void)instance_bind(instance, &instance->outputs, output, data);
}

bel_tensor bel_instance_output(const bel_instance *instance, int output)
{
    const bel_program_result *result = &instance->program->outputs[output];
    bel_tensor tensor = result->tensor;
    const bel_device *device = instance->program->device;
    tensor.data = device->in_place ? instance->addresses[result->buffer]
                                   : device->ops->result(instance, output);
    return tensor;
}

bool bel_device_is_lost(const bel_device *device)
{
    return atomic_load(&device->lost);
}

void bel_device_pin(bel_device *device, const void *memory, size_t bytes, bool pins)
{
    if (pins) {
        device->ops->pin(device, memory, bytes);
    } else {
        device->ops->unpin(device, memory);
    }
}

// --- Publication ---------------------------------------------------------------------------------

static int by_call(const void *a, const void *b)
{
    const bel_instance_publication *p = a, *q = b;
    if (p->call != q->call) return p->call < q->call ? -1 : 1;
    return (p->output > q->output) - (p->output < q->output);
}

// Finds the last writer of each buffer. Only the first output of a call is written tile by tile.
static void find_writers(bel_instance *instance)
{
    const bel_program *program = instance->program;
    for (int b = 0; b < program->buffer_count; b++)
        instance->writers[b] = (bel_instance_writer){.call = -1, .group = -1};
    for (int g = 0; g < program->group_count; g++) {
        const bel_program_group *group = &program->groups[g];
        for (int i = group->first; i < group->first + group->count; i++) {
            const bel_program_call *call = &program->calls[i];
            for (int k = 0; k < call->call.output_count; k++) {
                bel_instance_writer *writer = &instance->writers[call->output_buffers[k]];
                bool alone = writer->group != g;
                *writer =
                    (bel_instance_writer){.call = i,
                                          .group = g,
                                          .tiled = alone && k == 0 && call->call.tile_elements > 0};
            }
        }
    }
}

// Plans the publication of outputs. An output whose only writer works tile by tile is published by
// its tiles, if the call has no other such output. All others are published as a whole after their
// last writer, in the order of calls.
static void plan_publications(bel_instance *instance)
{
    const bel_program *program = instance->program;
    find_writers(instance);
    for (int i = 0; i < program->call_count; i++)
        instance->tile_outputs[i] = -1;
    for (int o = 0; o < program->output_count; o++) {
        if (!program->outputs[o].external) continue;
        const bel_instance_writer *writer = &instance->writers[program->outputs[o].buffer];
        if (writer->tiled && instance->tile_outputs[writer->call] < 0) {
            instance->tile_outputs[writer->call] = o;
        } else {
            instance->publications[instance->publication_count++] =
                (bel_instance_publication){writer->call, o};
        }
    }
    if (instance->publication_count > 0) {
        qsort(instance->publications, (size_t)instance->publication_count,
              sizeof *instance->publications, by_call);
    }
}

// --- Creation ------------------------------------------------------------------------------------

// Sets the addresses of all buffers that are not bound: in the arena, or in the instance's memory.
static void set_addresses(bel_instance *instance)
{
    const bel_program *program = instance->program;
    bool in_place = program->device->in_place;
    char *arena = instance->memory->address, *resident = NULL;
    if (in_place) {
        instance->resident = bel_xcalloc(program->resident_bytes + 64, 1);
        resident = (char *)instance->resident + (64 - (uintptr_t)instance->resident % 64);
    }
    for (int b = 0; b < program->buffer_count; b++) {
        const bel_program_buffer *buffer = &program->buffers[b];
        if (bel_program_binds(program, b)) continue;
        if (!in_place || buffer->kind == BEL_LOCATION_ARENA) {
            instance->addresses[b] = arena + buffer->offset;
        } else if (buffer->kind == BEL_LOCATION_RESIDENT) {
            instance->addresses[b] = resident + buffer->offset;
        } else if (buffer->kind == BEL_LOCATION_CONSTANT) {
            instance->addresses[b] = buffer->constant;
        }
    }
    if (in_place) return;
    instance->announced = bel_xcalloc((size_t)program->buffer_count, sizeof *instance->announced);
    instance->bound = bel_xcalloc((size_t)program->buffer_count, sizeof *instance->bound);
    instance->bound_outputs =
        bel_xcalloc((size_t)program->output_count + 1, sizeof *instance->bound_outputs);
}

bel_status *bel_program_allocate(const bel_program *program, bel_device_memory *out_memory)
{
    bel_device *device = program->device;
    bel_status *status =
        device->ops->allocate(device, program->arena_bytes, "activations", out_memory);
    if (status == NULL) return NULL;
    char text[BEL_PROGRAM_LARGEST_TEXT];
    return bel_status_wrap(status, __FILE__, __LINE__, "the largest values are %s",
                           bel_program_largest_text(program, text));
}

void bel_program_release(const bel_program *program, bel_device_memory *memory)
{
    program->device->ops->release(program->device, memory);
}

bel_status *bel_instance_create_on(const bel_program *program, bel_device_memory *memory,
                                   bel_instance **out_instance)
{
    bel_instance *instance = bel_xcalloc(1, sizeof *instance);
    size_t calls = (size_t)program->call_count, buffers = (size_t)program->buffer_count;
    instance->program = program;
    instance->memory = memory;
    instance->calls = bel_xcalloc(calls, sizeof *instance->calls);
    instance->addresses = bel_xcalloc(buffers, sizeof *instance->addresses);
    instance->writers = bel_xcalloc(buffers, sizeof *instance->writers);
    instance->publications =
        bel_xcalloc((size_t)program->output_count, sizeof *instance->publications);
    instance->tile_outputs = bel_xcalloc(calls, sizeof *instance->tile_outputs);
    set_addresses(instance);
    place_calls(instance);
    plan_publications(instance);
    bel_status *status = program->device->ops->bind(program->device, instance);
    if (status != NULL) {
        bel_instance_destroy(instance);
        return status;
    }
    *out_instance = instance;
    return NULL;
}

bel_instance *bel_instance_create(const bel_program *program, void *arena)
{
    bel_instance *instance;
    BEL_CHECK(program->device->in_place);
    bel_device_memory *memory = bel_xcalloc(1, sizeof *memory);
    *memory = (bel_device_memory){.address = arena};
    bel_status_ignore(bel_instance_create_on(program, memory, &instance)); // the CPU's cannot fail
    instance->own_memory = memory;
    return instance;
}

void bel_instance_destroy(bel_instance *instance)
{
    if (instance == NULL) return;
    instance->program->device->ops->unbind(instance);
    if (instance->memory->user == instance) instance->memory->user = NULL;
    bel_free(instance->own_memory);
    bel_free(instance->calls);
    bel_free(instance->addresses);
    bel_free(instance->announced);
    bel_free(instance->bound);
    bel_free(instance->bound_outputs);
    bel_free(instance->resident);
    bel_free(instance->inputs.buffers);
    bel_free(instance->variables.buffers);
    bel_free(instance->outputs.buffers);
    bel_free(instance->patches);
    bel_free(instance->first_patches);
    bel_free(instance->writers);
    bel_free(instance->publications);
    bel_free(instance->tile_outputs);
    bel_free(instance);
}

// --- Running -------------------------------------------------------------------------------------

static void set_context(bel_instance *instance, bel_run_context *context)
{
    for (int i = 0; instance->context != context && i < instance->program->call_count; i++)
        instance->calls[i].context = context;
    instance->context = context;
}

bel_status *bel_instance_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                             bel_publish_fn *publish, void *publish_context)
{
    const bel_program *program = instance->program;
    const bel_instance_run_args args = {publish, publish_context, 0};
    if (program->exchange_count > 0)
        return BEL_ERR(BEL_FAILED_PRECONDITION, "the program has collectives: run it in parts");
    atomic_store_explicit(&context->error, 0, memory_order_relaxed);
    if (instance->async != NULL) return bel_instance_async_run(instance, team, context, &args);
    set_context(instance, context);
    int first = instance->settled ? program->prologue_groups : 0;
    bel_status *status =
        program->device->ops->run(instance, first, program->group_count, 0, team, &args);
    if (status == NULL) status = bel_instance_data_error(program, context);
    instance->settled = status == NULL;
    return status;
}

bel_status *bel_instance_run_groups(bel_instance *instance, int first, int end, bel_team *team,
                                    bel_run_context *context)
{
    const bel_instance_run_args args = {NULL, NULL, 0};
    BEL_CHECK(instance->program->device->in_place && instance->async == NULL);
    BEL_CHECK(instance->program->exchange_count == 0 && instance->program->prologue_groups == 0);
    if (first == 0) atomic_store_explicit(&context->error, 0, memory_order_relaxed);
    set_context(instance, context);
    BEL_TRY(instance->program->device->ops->run(instance, first, end, 0, team, &args));
    return bel_instance_data_error(instance->program, context);
}

const bel_program *bel_instance_program(const bel_instance *instance)
{
    return instance->program;
}

// Copies the results of an exchange to the outputs that the caller bound. They were written to the
// memory from which the GPU will copy.
static void copy_exchanged(const bel_instance *instance, int next, int end)
{
    const bel_program *program = instance->program;
    for (; next < instance->publication_count && instance->publications[next].call < end; next++) {
        const bel_instance_publication *its = &instance->publications[next];
        const bel_tensor *tensor = &program->outputs[its->output].tensor;
        if (instance->bound_outputs[its->output] == NULL) continue;
        memcpy(instance->bound_outputs[its->output],
               program->device->ops->exchanged(instance, its->call, true),
               bel_tensor_bytes(tensor));
    }
}

// The outputs of an exchange are published at the start of the part after it.
bel_status *bel_instance_run_part(bel_instance *instance, int part, bel_team *team,
                                  bel_run_context *context, bel_publish_fn *publish,
                                  void *publish_context)
{
    const bel_program *program = instance->program;
    const bel_instance_run_args args = {publish, publish_context, part};
    int first = instance->settled ? program->prologue_groups : 0, next = 0;
    int end = program->group_count;
    if (part == 0) {
        atomic_store_explicit(&context->error, 0, memory_order_relaxed);
        set_context(instance, context);
    } else {
        const bel_program_exchange *before = &program->exchanges[part - 1];
        first = before->end_group;
        while (next < instance->publication_count &&
               instance->publications[next].call < before->first_call)
            next++;
        if (!bel_program_binds_outputs(program)) copy_exchanged(instance, next, before->end_call);
        bel_instance_publish(instance, &args, before->end_call, &next);
    }
    if (part < program->exchange_count) end = program->exchanges[part].first_group;
    bel_status *status = program->device->ops->run(instance, first, end, next, team, &args);
    if (status == NULL) status = bel_instance_data_error(program, context);
    if (part == program->exchange_count) instance->settled = status == NULL;
    return status;
}

int bel_instance_exchange_parts(const bel_instance *instance, int exchange)
{
    const bel_program_exchange *its = &instance->program->exchanges[exchange];
    return its->end_call - its->first_call;
}

bel_exchange_part bel_instance_exchange_part(const bel_instance *instance, int exchange, int part)
{
    int call = instance->program->exchanges[exchange].first_call + part;
    const bel_kernel_call *of = &instance->calls[call];
    bel_exchange_part its = {of->params, of->inputs[0], of->outputs[0]};
    const bel_device *device = instance->program->device;
    if (device->in_place) return its;
    its.input.data = device->ops->exchanged(instance, call, false);
    its.output.data = device->ops->exchanged(instance, call, true);
    return its;
}

bel_status *bel_instance_profile(bel_instance *instance, bel_run_context *context, int runs,
                                 int64_t *out_ns, int64_t *out_all_ns)
{
    const bel_program *program = instance->program;
    atomic_store_explicit(&context->error, 0, memory_order_relaxed);
    set_context(instance, context);
    BEL_TRY(program->device->ops->profile(instance, runs, out_ns, out_all_ns));
    return bel_instance_data_error(program, context);
}
