// Device that runs programs: the CPU or a GPU (cuda/cuda.h). Compiling and running know only this
// interface; streams, events and kernels stay inside the implementation.
//
//   memory     allocate, release, pin     memory of an instance's buffers
//   program    prepare                    a call in the form that the device runs
//   queue      bind, run, result, unbind  runs groups of calls, in order, and publishes outputs
//
// The interface works on groups of calls, not on single operations with queues and events. So the
// CPU's loop over bound kernel calls (device_cpu.c) implements it directly, and a GPU is free to
// replay a whole program with one call.
//
// An `in_place` device reads inputs and variables, and writes external outputs, in the memory that
// the caller bound. For any other device, the plan of a program has room for all of them in the
// arena, and a run copies. It copies inputs, and variables unless they are fixed and already there.
// Each external output is then copied to the caller's memory and published as soon as it is
// written. A program that is bound on the device (bel_program_options.on_device) uses the caller's
// variables and external outputs in device memory, and publishes all outputs at the end.
#ifndef BELFRY_RUNTIME_DEVICE_H
#define BELFRY_RUNTIME_DEVICE_H

#include "runtime/bf16_values.h"
#include "runtime/instance_inner.h"

// Memory use of a device that is not in place, in bytes.
typedef struct bel_device_use {
    size_t taken;     // allocated by this process and not released
    size_t free, all; // all processes
} bel_device_use;

typedef struct bel_device_ops {
    // RESOURCE_EXHAUSTED: names `what`, the bytes requested, and the bytes free or within the
    // limit. (For an instance: bel_program_allocate.)
    bel_status *(*allocate)(bel_device *device, size_t bytes, const char *what,
                            bel_device_memory *out_memory);
    void (*release)(bel_device *device, bel_device_memory *memory); // accepts empty memory

    // For a device that is not in place; any thread. False: the device does not report its use.
    bool (*look)(bel_device *device, bel_device_use *out_use);

    // Fills in how the device runs `call`, whose operands are known. The caller names calls.
    // UNIMPLEMENTED: the device cannot run it; says what it cannot.
    bel_status *(*prepare)(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call);

    // Operands of `call`, whose shapes are known, that may be stored as bf16 (inputs_bf16 of a
    // call); called before `prepare`. NULL: never any. Errors: as of `prepare`.
    bel_status *(*takes_bf16)(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call,
                              bel_bf16_operands *out_operands);

    // Adds the device's part of an instance, whose `addresses` and `calls` are set.
    bel_status *(*bind)(bel_device *device, bel_instance *instance);
    void (*unbind)(bel_instance *instance);

    // Runs groups [first, end), after all before them. Publishes the outputs that they write, from
    // publication `next` on. Data errors go to instance->context.
    bel_status *(*run)(bel_instance *instance, int first, int end, int next, bel_team *team,
                       const bel_instance_run_args *args);

    // Runs all calls `runs` times, one by one. Gives the shortest time of each, in nanoseconds, and
    // the shortest time of all of them as `run` runs them.
    bel_status *(*profile)(bel_instance *instance, int runs, int64_t *out_ns, int64_t *out_all_ns);

    // For a device that is not in place. `result`: the memory in which the caller reads output
    // `output` of the last run. `exchanged`: the memory in which the caller reads the input, or
    // writes the output, of call `call` of a collective.
    void *(*result)(const bel_instance *instance, int output);
    void *(*exchanged)(const bel_instance *instance, int call, bool output);

    // The caller will bind this memory, so copies from and to it may become faster, if the device
    // can. Unpin it before it is unmapped.
    void (*pin)(bel_device *device, const void *memory, size_t bytes);
    void (*unpin)(bel_device *device, const void *memory);
} bel_device_ops;

struct bel_device {
    const bel_device_ops *ops;
    char name[16]; // "cpu:0", "cuda:1"
    int number;    // the 1 of "cuda:1"
    // For a device that is not in place: most bytes that `allocate` gives in all at a time; 0: all
    // there are. Set by the last caller that chose the device.
    atomic_size_t memory_limit;
    // Time after which a run counts as hanging and the device as lost; 0: a few minutes. Set
    // together with the limit.
    atomic_llong patience_ns;
    atomic_int guests; // evaluations and predictions, which release their memory there soon
    bool in_place;
    atomic_bool lost; // bel_device_is_lost
};

static inline int64_t bel_device_patience(const bel_device *device)
{
    enum { OTHERWISE_SECS = 150 };
    int64_t ns = atomic_load(&device->patience_ns);
    return ns > 0 ? ns : INT64_C(1000000000) * OTHERWISE_SECS;
}

extern bel_device bel_device_cpu; // the threads of the caller

// Whether the caller binds external outputs, and variables, in the memory that programs use.
static inline bool bel_program_binds_outputs(const bel_program *program)
{
    return program->device->in_place || program->on_device;
}

// Whether the caller binds the memory of a buffer. If not, the buffer has room in the arena or
// belongs to the program.
static inline bool bel_program_binds(const bel_program *program, int buffer)
{
    bel_location_kind kind = program->buffers[buffer].kind;
    if (program->on_device) return kind == BEL_LOCATION_VARIABLE || kind == BEL_LOCATION_OUTPUT;
    return program->device->in_place &&
           (kind == BEL_LOCATION_INPUT || kind == BEL_LOCATION_VARIABLE ||
            kind == BEL_LOCATION_OUTPUT);
}

#endif
