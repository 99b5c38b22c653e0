// What runs programs: the CPU, or a card (cuda/cuda.h). This is all that compiling and running know
// of a device; what an implementation is made of (streams, events, kernels) stays its own.
//
//   memory     allocate, release, pin     where the buffers of an instance lie
//   program    prepare                    a call in the form that the device runs
//   queue      bind, run, result, unbind  runs groups of calls, in order, and publishes outputs
//
// The cut is at groups of calls and not at single operations on queues and events, so that the
// CPU's loop over bound kernel calls (device_cpu.c) is an implementation without a detour, and a
// card's is free to replay a whole program by one call.
//
// A device that is `in_place` reads inputs and variables, and writes external outputs, where the
// caller has bound them. For another one the plan of a program has room for them all in the arena,
// and a run copies: inputs, and variables unless they are fixed and were there before; then, output
// by output, as soon as an external one is written, it is copied to where the caller wants it, and
// published. Of a program that is bound on the device (bel_program_options.on_device) variables and
// external outputs are bound where they lie, and all is published at the end.
#ifndef BELFRY_RUNTIME_DEVICE_H
#define BELFRY_RUNTIME_DEVICE_H

#include "runtime/halves.h"
#include "runtime/instance_inner.h"

// Memory of a device that is not in place, in bytes.
typedef struct bel_device_use {
    size_t taken;     // by `allocate` of this process, and not released
    size_t free, all; // of all processes
} bel_device_use;

typedef struct bel_device_ops {
    // RESOURCE_EXHAUSTED: names `what`, what was asked for, and what is free or within the limit.
    // (For an instance: bel_program_allocate.)
    bel_status *(*allocate)(bel_device *device, size_t bytes, const char *what,
                            bel_device_memory *out_memory);
    void (*release)(bel_device *device, bel_device_memory *memory); // empty memory is fine

    // Of a device that is not in place; any thread. False: the device does not say.
    bool (*look)(bel_device *device, bel_device_use *out_use);

    // Fills in how `call`, whose operands are known, is run. UNIMPLEMENTED: the device cannot;
    // says what. Names of calls come from the caller.
    bel_status *(*prepare)(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call);

    // Which operands of `call`, whose shapes are known, may lie as bfloat16 (inputs_half of a
    // call); called in front of `prepare`. NULL: none ever. Errors as those of `prepare`.
    bel_status *(*takes_halves)(bel_device *device, const bel_prepare *prepare,
                                bel_kernel_call *call, bel_half_operands *out_operands);

    // What the device adds to an instance: `instance->addresses` and `instance->calls` are set.
    bel_status *(*bind)(bel_device *device, bel_instance *instance);
    void (*unbind)(bel_instance *instance);

    // Runs groups [first, end), after all before them, and publishes what comes from publication
    // `next` on and is written by them. Data errors go to instance->context.
    bel_status *(*run)(bel_instance *instance, int first, int end, int next, bel_team *team,
                       const bel_instance_run_args *args);

    // Runs all calls `runs` times, one by one, and says the shortest time of each, in nanoseconds,
    // and the shortest of all of them as `run` runs them.
    bel_status *(*profile)(bel_instance *instance, int runs, int64_t *out_ns, int64_t *out_all_ns);

    // Of a device that is not in place: where the caller reads output `output` of the last run, and
    // reads or writes what call `call`, of a collective, takes and gives.
    void *(*result)(const bel_instance *instance, int output);
    void *(*exchanged)(const bel_instance *instance, int call, bool output);

    // The caller will bind this memory: copies from and to it become faster. Whether they do is the
    // device's affair. Unpin it before it is unmapped.
    void (*pin)(bel_device *device, const void *memory, size_t bytes);
    void (*unpin)(bel_device *device, const void *memory);
} bel_device_ops;

struct bel_device {
    const bel_device_ops *ops;
    char name[16]; // "cpu:0", "cuda:1"
    int number;    // the 1 of "cuda:1"
    // Of a device that is not in place: the most that `allocate` gives at a time, in all; 0: what
    // there is. Whoever chose the device last has set it.
    atomic_size_t memory_limit;
    // How long a run may take before it counts as hanging, and the device as lost; 0: a few
    // minutes. Set as the limit is.
    atomic_llong patience_ns;
    atomic_int guests; // evaluations and predictions, which give their memory there back soon
    bool in_place;
    atomic_bool lost; // bel_device_is_lost
};

// Of `patience_ns`.
static inline int64_t bel_device_patience(const bel_device *device)
{
    enum { OTHERWISE_SECS = 150 };
    int64_t ns = atomic_load(&device->patience_ns);
    return ns > 0 ? ns : INT64_C(1000000000) * OTHERWISE_SECS;
}

extern bel_device bel_device_cpu; // the threads of whoever runs

// Whether the caller binds external outputs, and variables, where programs read and write them.
static inline bool bel_program_binds_outputs(const bel_program *program)
{
    return program->device->in_place || program->on_device;
}

// Whether the caller binds a buffer where it lies: else it has room in the arena, or is the
// program's own.
static inline bool bel_program_binds(const bel_program *program, int buffer)
{
    bel_location_kind kind = program->buffers[buffer].kind;
    if (program->on_device) return kind == BEL_LOCATION_VARIABLE || kind == BEL_LOCATION_OUTPUT;
    return program->device->in_place &&
           (kind == BEL_LOCATION_INPUT || kind == BEL_LOCATION_VARIABLE ||
            kind == BEL_LOCATION_OUTPUT);
}

#endif
