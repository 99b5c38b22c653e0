// Running a program on a card.
//
// All that a run does is queued at once, on two streams: `work` takes copies in and kernels, `out`
// takes copies of reports out. Behind the kernel that is the last to write a report `out` waits for
// an event of `work`, copies, and records an event of its own; the thread that runs then waits for
// these events in order and publishes, so reports leave while kernels behind them still run. Small
// reports that follow each other go together. At the end `work` copies results (the loss, a data
// error), and is waited for.
//
// The kernels between two such places are a *segment*. Their arguments never change, since all
// memory of an instance stays where it is and what differs from run to run is in the card's memory
// (bel_cuda_state), so from its second run on a segment is a graph of the driver that one call
// replays.
//
// Memory that streams read or write belongs to them until they are waited for. A run therefore
// never returns, not even with an error, before both streams are finished.
//
// While a trace is recorded marks between the parts of a run say when the card did them (marks.h).
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/marks.h"
#include "ops/collective.h"

_Static_assert((int)BEL_CUDA_MAX_INPUTS >= (int)BEL_OP_MAX_INPUTS + 1 &&
                   (int)BEL_CUDA_MAX_OUTPUTS >= (int)BEL_OP_MAX_OUTPUTS,
               "the operands of a call");
_Static_assert(sizeof(bel_rng_key) == 2 * sizeof(uint32_t), "keys as kernels read them");

enum { TOGETHER_BYTES = 1 << 20 }; // reports that leave together, at least

// A launch with all its arguments.
typedef struct bound_launch {
    const bel_cuda_launch *launch;
    int call;
} bound_launch;

// A stretch of launches, and the graph that replays it.
typedef struct segment {
    int first, end; // calls
    void *graph;    // NULL: not yet
    bool ran;
} segment;

// Memory of the process that the card copies to and from.
typedef struct staging {
    char *memory;
    size_t bytes;
    size_t *results;                      // by output: where it is; SIZE_MAX: nowhere
    size_t *exchanged_in, *exchanged_out; // by call
} staging;

typedef struct executor {
    bel_cuda_device *device;
    const bel_cuda_api *api;
    const bel_instance *instance;
    void *work, *out; // streams
    bound_launch *launches;
    int *first_launches;         // by call, and one behind
    bel_cuda_operands *operands; // by call
    bel_device_memory state;     // on the card: bel_cuda_state and the keys
    size_t state_bytes;
    bel_rng_key *keys; // behind the bel_cuda_state in `staged`, by call
    staging staged;    // begins with what goes to `state`
    segment *segments;
    int segment_count;
    void **ready, **gone; // events, by segment: it has run; its reports have been copied
    uint64_t seed;        // of the keys
    bool keyed;
    bel_cuda_marks marks; // three, and three of each segment
} executor;

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

// --- Binding -------------------------------------------------------------------------------------

// What kernels find of each call.
static void set_operands(executor *x)
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

// NULL: it has none.
static const bel_cuda_call *launches_of(const bel_kernel_call *call)
{
    return bel_op_is_collective(call->op) ? NULL : call->params;
}

static void set_launches(executor *x)
{
    const bel_program *program = x->instance->program;
    int all = 0;
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = launches_of(&program->calls[c].call);
        x->first_launches[c] = all;
        if (made != NULL) all += made->count;
    }
    x->first_launches[program->call_count] = all;
    x->launches = bel_xcalloc((size_t)all + 1, sizeof *x->launches);
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = launches_of(&program->calls[c].call);
        for (int l = 0; made != NULL && l < made->count; l++) {
            x->launches[x->first_launches[c] + l] = (bound_launch){&made->launches[l], c};
        }
    }
}

static size_t take(size_t *bytes, const bel_tensor *tensor)
{
    size_t at = *bytes;
    *bytes += (bel_tensor_bytes(tensor) + 63) / 64 * 64;
    return at;
}

// Where everything lies that the card copies and the caller reads or writes: the state, results,
// and what is exchanged.
static void lay_out(executor *x)
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
                                   : take(&x->staged.bytes, &program->outputs[o].tensor);
    for (int e = 0; e < program->exchange_count; e++)
        for (int c = program->exchanges[e].first_call; c < program->exchanges[e].end_call; c++) {
            x->staged.exchanged_in[c] = take(&x->staged.bytes, &program->calls[c].call.inputs[0]);
            x->staged.exchanged_out[c] = take(&x->staged.bytes, &program->calls[c].call.outputs[0]);
        }
}

// A segment ends behind the last writer of a report that is to leave, and where a part ends.
static void cut_segments(executor *x)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    bool *ends = bel_xcalloc((size_t)program->call_count + 1, sizeof *ends);
    size_t bytes = 0;
    for (int p = 0; p < instance->publication_count; p++) {
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
        x->segments[x->segment_count++] = (segment){.first = first, .end = c};
        first = c;
    }
    if (first == 0) x->segments[x->segment_count++] = (segment){.first = 0}; // without any call
    bel_free(ends);
}

static bel_status *make_queues(executor *x)
{
    const bel_cuda_api *api = x->api;
    BEL_TRY(bel_cuda_status(api->stream_create(&x->work, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    BEL_TRY(bel_cuda_status(api->stream_create(&x->out, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
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
    executor *x = bel_xcalloc(1, sizeof *x);
    size_t calls = (size_t)instance->program->call_count;
    x->device = (bel_cuda_device *)device;
    x->api = x->device->api;
    x->instance = instance;
    instance->on_device = x;
    for (int c = 0; c < instance->program->call_count; c++)
        instance->tile_outputs[c] = -1; // reports leave whole
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
    set_operands(x);
    set_launches(x);
    cut_segments(x);
    return make_queues(x);
}

void bel_cuda_unbind(bel_instance *instance)
{
    executor *x = instance->on_device;
    if (x == NULL) return;
    const bel_cuda_api *api = x->api;
    api->context_set(x->device->context);
    for (int s = 0; s < x->segment_count; s++) {
        if (x->segments[s].graph != NULL) api->graph_exec_destroy(x->segments[s].graph);
        if (x->ready != NULL && x->ready[s] != NULL) api->event_destroy(x->ready[s]);
        if (x->gone != NULL && x->gone[s] != NULL) api->event_destroy(x->gone[s]);
    }
    bel_cuda_marks_free(&x->marks);
    if (x->work != NULL) api->stream_destroy(x->work);
    if (x->out != NULL) api->stream_destroy(x->out);
    x->device->device.ops->release(&x->device->device, &x->state);
    if (x->staged.memory != NULL) api->host_release(x->staged.memory);
    bel_free(x->staged.results);
    bel_free(x->staged.exchanged_in);
    bel_free(x->staged.exchanged_out);
    bel_free(x->ready);
    bel_free(x->gone);
    bel_free(x->segments);
    bel_free(x->launches);
    bel_free(x->first_launches);
    bel_free(x->operands);
    bel_free(x);
    instance->on_device = NULL;
}

void *bel_cuda_result(const bel_instance *instance, int output)
{
    const executor *x = instance->on_device;
    if (instance->program->outputs[output].external) return instance->bound_outputs[output];
    return x->staged.memory + x->staged.results[output];
}

void *bel_cuda_exchanged(const bel_instance *instance, int call, bool output)
{
    const executor *x = instance->on_device;
    return x->staged.memory +
           (output ? x->staged.exchanged_out[call] : x->staged.exchanged_in[call]);
}

// --- Copies in -----------------------------------------------------------------------------------

// Keys are made on the CPU, by hashes of the seed; a job has one seed.
static void make_keys(executor *x, uint64_t seed)
{
    const bel_program *program = x->instance->program;
    if (x->keyed && x->seed == seed) return;
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = launches_of(&program->calls[c].call);
        if (made == NULL || made->random == NULL) continue;
        x->keys[c] = bel_rng_key_make(seed, made->random, program->calls[c].call.random_id);
    }
    x->seed = seed;
    x->keyed = true;
}

static bel_status *send_state(executor *x)
{
    const bel_run_context *context = x->instance->context;
    make_keys(x, context->seed);
    bel_cuda_state state = {.seed = context->seed,
                            .step = context->step,
                            .replica = context->replica,
                            .round = context->round,
                            .place = bel_run_place(context)};
    memcpy(x->staged.memory, &state, sizeof state);
    return bel_cuda_status(
        x->api->copy_in(address_of(x->state.address), x->staged.memory, x->state_bytes, x->work),
        "copy to the card");
}

static bel_status *send(executor *x, int buffer, const void *data)
{
    const bel_program_buffer *its = &x->instance->program->buffers[buffer];
    if (its->size_bytes == 0 || data == NULL) return NULL;
    return bel_cuda_status(
        x->api->copy_in(address_of(x->instance->addresses[buffer]), data, its->size_bytes, x->work),
        "copy to the card");
}

// Inputs always; variables where they may be others than those there; constants where another
// program has used the memory since.
static bel_status *send_all(executor *x, bool fresh)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    for (int b = 0; b < program->buffer_count; b++) {
        const bel_program_buffer *its = &program->buffers[b];
        bool used = its->first >= 0 || its->last == INT32_MAX;
        bool due = its->kind == BEL_LOCATION_INPUT || its->kind == BEL_LOCATION_VARIABLE;
        if (its->kind == BEL_LOCATION_VARIABLE && program->fixed_variables)
            due = fresh || !instance->settled;
        if (used && due) BEL_TRY(send(x, b, instance->bound[b]));
        if (used && fresh && its->kind == BEL_LOCATION_CONSTANT) BEL_TRY(send(x, b, its->constant));
    }
    return NULL;
}

// --- Kernels -------------------------------------------------------------------------------------

static bel_status *launch(const executor *x, const bound_launch *bound)
{
    const bel_cuda_launch *its = bound->launch;
    bel_cuda_operands *operands = &x->operands[bound->call];
    if (its->library != NULL) return its->library(x->device, x->work, operands, its->params);
    union {
        const void *read;
        void *argument;
    } params = {.read = its->params};
    void *arguments[2] = {operands, params.argument};
    return bel_cuda_status(x->api->launch(its->function, its->blocks, 1, 1, its->threads, 1, 1, 0,
                                          x->work, arguments, NULL),
                           "launch a kernel");
}

static bel_status *launch_all(executor *x, const segment *s)
{
    for (int l = x->first_launches[s->first]; l < x->first_launches[s->end]; l++) {
        const bound_launch *bound = &x->launches[l];
        BEL_TRY_CTX(launch(x, bound), "%s", x->instance->program->calls[bound->call].name);
    }
    return NULL;
}

// The launches of a segment as a graph. Whatever happens, capturing ends.
static bel_status *capture(executor *x, segment *s)
{
    void *graph = NULL;
    BEL_TRY(bel_cuda_status(x->api->capture_begin(x->work, BEL_CUDA_CAPTURE_THREAD_LOCAL),
                            "begin a graph"));
    bel_status *status = launch_all(x, s);
    bel_status *ended = bel_cuda_status(x->api->capture_end(x->work, &graph), "end a graph");
    if (status != NULL) bel_status_ignore(ended); // the first error is the cause
    if (status == NULL) status = ended;
    if (status == NULL) {
        status =
            bel_cuda_status(x->api->graph_instantiate(&s->graph, graph, 0), "make a graph ready");
    }
    if (graph != NULL) x->api->graph_destroy(graph);
    return status;
}

// The first time one by one: a program that runs once is not worth a graph.
static bel_status *run_segment(executor *x, segment *s)
{
    int launches = x->first_launches[s->end] - x->first_launches[s->first];
    if (launches <= 1 || !s->ran) {
        s->ran = true;
        return launch_all(x, s);
    }
    if (s->graph == NULL) BEL_TRY(capture(x, s));
    return bel_cuda_status(x->api->graph_launch(s->graph, x->work), "launch a graph");
}

// --- Copies out ----------------------------------------------------------------------------------

// The reports that the segment is the last to write: copied on `out` behind it.
static bel_status *fetch_reports(executor *x, int s, int next, int end)
{
    const bel_instance *instance = x->instance;
    if (next == end) return NULL;
    BEL_TRY(bel_cuda_status(x->api->event_record(x->ready[s], x->work), "record an event"));
    BEL_TRY(bel_cuda_status(x->api->stream_wait(x->out, x->ready[s], 0), "wait for an event"));
    BEL_TRY(bel_cuda_mark(&x->marks, x->out, BEL_CUDA_BEGINS, 0));
    for (int p = next; p < end; p++) {
        int output = instance->publications[p].output;
        const bel_program_result *result = &instance->program->outputs[output];
        size_t bytes = bel_tensor_bytes(&result->tensor);
        if (bytes == 0 || instance->bound_outputs[output] == NULL) continue;
        BEL_TRY(bel_cuda_status(x->api->copy_out(instance->bound_outputs[output],
                                                 address_of(instance->addresses[result->buffer]),
                                                 bytes, x->out),
                                "copy from the card"));
    }
    BEL_TRY(bel_cuda_mark(&x->marks, x->out, BEL_TRACE_COPY_REPORTS, s));
    return bel_cuda_status(x->api->event_record(x->gone[s], x->out), "record an event");
}

static bel_status *fetch(executor *x, size_t place, const void *from, size_t bytes)
{
    if (bytes == 0) return NULL;
    return bel_cuda_status(
        x->api->copy_out(x->staged.memory + place, address_of(from), bytes, x->work),
        "copy from the card");
}

static bel_status *fetch_results(executor *x, int end)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    BEL_TRY(fetch(x, 0, x->state.address, sizeof(bel_cuda_state)));
    for (int e = 0; e < program->exchange_count; e++) {
        const bel_program_exchange *its = &program->exchanges[e];
        for (int c = its->first_call; its->first_group == end && c < its->end_call; c++)
            BEL_TRY(fetch(x, x->staged.exchanged_in[c], instance->calls[c].inputs[0].data,
                          bel_tensor_bytes(&instance->calls[c].inputs[0])));
    }
    for (int o = 0; end == program->group_count && o < program->output_count; o++) {
        const bel_program_result *result = &program->outputs[o];
        if (result->external) continue;
        BEL_TRY(fetch(x, x->staged.results[o], instance->addresses[result->buffer],
                      bel_tensor_bytes(&result->tensor)));
    }
    return bel_cuda_mark(&x->marks, x->work, BEL_TRACE_COPY_RESULTS, 0);
}

// What the other replicas have made of the exchange before the part that begins.
static bel_status *send_exchanged(executor *x, int part)
{
    const bel_program *program = x->instance->program;
    if (part == 0) return NULL;
    const bel_program_exchange *its = &program->exchanges[part - 1];
    for (int c = its->first_call; c < its->end_call; c++) {
        const bel_tensor *output = &x->instance->calls[c].outputs[0];
        size_t bytes = bel_tensor_bytes(output);
        if (bytes == 0) continue;
        BEL_TRY(bel_cuda_status(x->api->copy_in(address_of(output->data),
                                                x->staged.memory + x->staged.exchanged_out[c],
                                                bytes, x->work),
                                "copy to the card"));
    }
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

// What is queued of a run, and what is published of it when it is there.
typedef struct queued {
    int first_segment, end_segment;
    int next; // publication
} queued;

// Publications whose calls come before `end`.
static int publications_before(const bel_instance *instance, int next, int end)
{
    while (next < instance->publication_count && instance->publications[next].call < end)
        next++;
    return next;
}

static bel_status *queue_all(executor *x, int end, const queued *q, int part)
{
    const bel_program *program = x->instance->program;
    int end_call = bel_program_calls_before(program, end), next = q->next;
    BEL_TRY(send_exchanged(x, part));
    BEL_TRY(bel_cuda_mark(&x->marks, x->work, BEL_TRACE_COPY_IN, 0));
    for (int s = q->first_segment; s < q->end_segment; s++) {
        BEL_TRY(run_segment(x, &x->segments[s]));
        BEL_TRY(bel_cuda_mark(&x->marks, x->work, BEL_TRACE_KERNELS, s));
        int until = publications_before(
            x->instance, next, x->segments[s].end < end_call ? x->segments[s].end : end_call);
        BEL_TRY(fetch_reports(x, s, next, until));
        next = until;
    }
    return fetch_results(x, end);
}

// In the order in which they were queued.
static bel_status *publish_all(executor *x, const queued *q, int end_call,
                               const bel_instance_run_args *args)
{
    int next = q->next;
    for (int s = q->first_segment; s < q->end_segment; s++) {
        int end = x->segments[s].end < end_call ? x->segments[s].end : end_call;
        if (publications_before(x->instance, next, end) == next) continue;
        BEL_TRY(bel_cuda_status(x->api->event_finish(x->gone[s]), "wait for a report"));
        bel_instance_publish(x->instance, args, end, &next);
    }
    return NULL;
}

static void take_error(const executor *x)
{
    bel_cuda_state state;
    bel_run_context *context = x->instance->context;
    memcpy(&state, x->staged.memory, sizeof state);
    if (state.error == 0) return;
    context->bad_value = state.bad_value;
    context->bad_low = state.bad_low;
    context->bad_limit = state.bad_limit;
    atomic_store(&context->error, state.error);
}

// Outputs that are inputs, variables or constants themselves lie with the process already. They
// come first among the publications.
static int hand_over_leaves(executor *x, const bel_instance_run_args *args)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    int next = 0, end = publications_before(instance, 0, 0);
    for (int p = 0; p < end; p++) {
        int output = instance->publications[p].output, buffer = program->outputs[output].buffer;
        const bel_program_buffer *its = &program->buffers[buffer];
        const void *from =
            its->kind == BEL_LOCATION_CONSTANT ? its->constant : instance->bound[buffer];
        if (instance->bound_outputs[output] != NULL && from != NULL)
            memcpy(instance->bound_outputs[output], from, its->size_bytes);
    }
    bel_instance_publish(instance, args, 0, &next);
    return end;
}

bel_status *bel_cuda_run(bel_instance *instance, int first, int end, int next, bel_team *team,
                         const bel_instance_run_args *args)
{
    executor *x = instance->on_device;
    const bel_program *program = instance->program;
    (void)team;
    BEL_TRY(bel_cuda_enter(x->device));
    bel_status *status = bel_cuda_marks_begin(&x->marks, x->work);
    if (args->part == 0) {
        next = hand_over_leaves(x, args);
        bool fresh = instance->memory->user != instance;
        if (fresh) first = 0; // what the prologue has made is gone
        if (status == NULL) status = send_state(x);
        if (status == NULL) status = send_all(x, fresh);
        instance->memory->user = status == NULL ? instance : NULL;
    }
    queued q = {.next = next};
    int first_call = bel_program_calls_before(program, first),
        end_call = bel_program_calls_before(program, end);
    while (q.first_segment < x->segment_count && x->segments[q.first_segment].first < first_call)
        q.first_segment++;
    q.end_segment = q.first_segment;
    while (q.end_segment < x->segment_count && x->segments[q.end_segment].end <= end_call)
        q.end_segment++;
    if (status == NULL) status = queue_all(x, end, &q, args->part);
    if (status == NULL) status = publish_all(x, &q, end_call, args);
    bel_status *finished = bel_cuda_status(x->api->stream_finish(x->work), "run a program");
    if (status != NULL) bel_status_ignore(finished); // the first error is the cause
    if (status == NULL) status = finished;
    finished = bel_cuda_status(x->api->stream_finish(x->out), "copy from the card");
    if (status != NULL) bel_status_ignore(finished); // the first error is the cause
    if (status == NULL) status = finished;
    if (status == NULL) {
        take_error(x);
        bel_cuda_marks_end(&x->marks, instance->context, x->device->device.number);
        return NULL;
    }
    instance->memory->user = NULL;
    atomic_store(&x->device->device.lost, true);
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", x->device->device.name);
}

// --- Profiles ------------------------------------------------------------------------------------

// One run as runs are, then all calls one by one, each between two of `events`, call after call.
// What is copied in may have been overwritten by then. While the card does the first the second is
// queued behind it, so that a call's time is the card's and not that of queueing it; but of
// programs that are through sooner than that.
static bel_status *queue_profile(executor *x, void **events)
{
    int calls = x->instance->program->call_count;
    BEL_TRY(send_all(x, false));
    BEL_TRY(bel_cuda_status(x->api->event_record(events[calls + 1], x->work), "record an event"));
    for (int s = 0; s < x->segment_count; s++)
        BEL_TRY(run_segment(x, &x->segments[s]));
    BEL_TRY(bel_cuda_status(x->api->event_record(events[calls + 2], x->work), "record an event"));
    BEL_TRY(send_all(x, false));
    for (int c = 0; c < calls; c++) {
        BEL_TRY(bel_cuda_status(x->api->event_record(events[c], x->work), "record an event"));
        BEL_TRY(launch_all(x, &(segment){.first = c, .end = c + 1}));
    }
    return bel_cuda_status(x->api->event_record(events[calls], x->work), "record an event");
}

static bel_status *keep_shortest(const executor *x, void *from, void *to, int64_t *out_ns)
{
    float ms;
    BEL_TRY(bel_cuda_status(x->api->event_elapsed(&ms, from, to), "read a card's clock"));
    int64_t ns = (int64_t)((double)ms * 1e6);
    if (ns < *out_ns) *out_ns = ns;
    return NULL;
}

// What nothing here writes, as the answers of exchanges, is zeros. The first run is none of those
// that count: graphs are made after it.
static bel_status *run_profile(executor *x, void **events, int runs, int64_t *out_ns,
                               int64_t *out_all_ns)
{
    const bel_instance *instance = x->instance;
    int calls = instance->program->call_count;
    for (int c = 0; c < calls; c++)
        out_ns[c] = INT64_MAX;
    *out_all_ns = INT64_MAX;
    BEL_TRY(bel_cuda_status(
        x->api->fill(address_of(instance->memory->address), 0, instance->memory->bytes, x->work),
        "fill memory"));
    BEL_TRY(send_state(x));
    BEL_TRY(send_all(x, true));
    for (int run = 0; run <= runs; run++) {
        BEL_TRY(queue_profile(x, events));
        BEL_TRY(bel_cuda_status(x->api->stream_finish(x->work), "run a program"));
        for (int c = 0; run > 0 && c < calls; c++)
            BEL_TRY(keep_shortest(x, events[c], events[c + 1], &out_ns[c]));
        if (run > 0) BEL_TRY(keep_shortest(x, events[calls + 1], events[calls + 2], out_all_ns));
    }
    return fetch(x, 0, x->state.address, sizeof(bel_cuda_state));
}

bel_status *bel_cuda_profile(bel_instance *instance, int runs, int64_t *out_ns, int64_t *out_all_ns)
{
    executor *x = instance->on_device;
    int count = instance->program->call_count + 3; // around calls, and around all of them
    BEL_TRY(bel_cuda_enter(x->device));
    void **events = bel_xcalloc((size_t)count, sizeof *events);
    bel_status *status = NULL;
    instance->memory->user = NULL;
    for (int e = 0; e < count && status == NULL; e++)
        status = bel_cuda_status(x->api->event_create(&events[e], BEL_CUDA_EVENT_TIMED),
                                 "make an event");
    if (status == NULL) status = run_profile(x, events, runs, out_ns, out_all_ns);
    bel_status *finished = bel_cuda_status(x->api->stream_finish(x->work), "run a program");
    if (status != NULL) bel_status_ignore(finished); // the first error is the cause
    if (status == NULL) status = finished;
    if (status == NULL) take_error(x);
    for (int e = 0; e < count; e++)
        if (events[e] != NULL) x->api->event_destroy(events[e]);
    bel_free(events);
    return status;
}
