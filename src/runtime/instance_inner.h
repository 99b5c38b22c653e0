// Internals of a bound program, shared by the executors; only for them and for devices
// (runtime/device.h).
#ifndef BELFRY_RUNTIME_INSTANCE_INNER_H
#define BELFRY_RUNTIME_INSTANCE_INNER_H

#include "runtime/program_inner.h"

// Buffers that the caller binds, by index of the input, variable or output; -1: the program does
// not use it.
typedef struct bel_instance_bound {
    int *buffers;
    int count;
} bel_instance_bound;

// Writer of a buffer.
typedef struct bel_instance_writer {
    int call;   // last call that writes it; -1: none
    int group;  // the call's
    bool tiled; // writes tile by tile, and is the group's only writer of the buffer
} bel_instance_writer;

// An output that is published as a whole.
typedef struct bel_instance_publication {
    int call; // writes the output
    int output;
} bel_instance_publication;

typedef struct bel_instance_async bel_instance_async;

struct bel_instance {
    const bel_program *program;
    bel_kernel_call *calls;
    void **addresses;          // by buffer, on the device
    void **bound;              // by buffer: the caller's memory, which a run copies; NULL: in place
    const void **announced;    // by buffer: bel_instance_announce_input
    void **bound_outputs;      // by output
    bool rebound;              // program bound on the device: addresses have changed
    bel_device_memory *memory; // the arena
    bel_device_memory *own_memory; // NULL: `memory` is the caller's
    void *on_device;               // added by the device
    void *resident;                // results of the prologue
    bool settled;                  // the prologue has run with the variables that are bound now
    bel_instance_bound inputs, variables, outputs;
    void ***patches;              // operands that hold the address of a caller's buffer, by buffer
    int *first_patches;           // [buffer_count + 1]
    bel_instance_writer *writers; // by buffer
    bel_instance_publication *publications; // by call
    int publication_count;
    int *tile_outputs; // by call: the output that its tiles publish, -1: none
    bool plain;        // every call has one tile, and no call is for a team: they run in order
    bel_run_context *context;  // known to the calls
    bel_instance_async *async; // NULL: synchronous executor
};

// How a run publishes its outputs.
typedef struct bel_instance_run_args {
    bel_publish_fn *publish; // NULL to publish nothing
    void *publish_context;
    int part; // program with exchanges: number of exchanges already made
} bel_instance_run_args;

// Runs a tile, and publishes the elements that it wrote if the output is published by tile.
void bel_instance_run_tile(const bel_instance *instance, const bel_instance_run_args *args,
                           int call, int64_t tile);

// Publishes outputs from publication `*next` on whose calls come before `end`. Sets *next to the
// first one left.
void bel_instance_publish(const bel_instance *instance, const bel_instance_run_args *args, int end,
                          int *next);

// The error that `context` has collected, or NULL.
bel_status *bel_instance_data_error(const bel_program *program, bel_run_context *context);

// --- Asynchronous programs -----------------------------------------------------------------------

bel_instance_async *bel_instance_async_create(const bel_instance *instance);
void bel_instance_async_destroy(bel_instance_async *async);
bel_status *bel_instance_async_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                                   const bel_instance_run_args *args);

#endif
