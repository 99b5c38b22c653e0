// What executors share of a bound program; for them, and for devices (runtime/device.h), only.
#ifndef BELFRY_RUNTIME_INSTANCE_INNER_H
#define BELFRY_RUNTIME_INSTANCE_INNER_H

#include "runtime/program_inner.h"

// What is bound from outside: by index of the input, the variable or the output the buffer that it
// is; -1: the program does not know it.
typedef struct bel_instance_bound {
    int *buffers;
    int count;
} bel_instance_bound;

// Who writes a buffer.
typedef struct bel_instance_writer {
    int call;   // the last one; -1: none
    int group;  // of that call
    bool tiled; // it goes from tile to tile, and no other call of its group writes the buffer
} bel_instance_writer;

// An output that is published whole.
typedef struct bel_instance_publication {
    int call; // that writes it
    int output;
} bel_instance_publication;

typedef struct bel_instance_async bel_instance_async;

struct bel_instance {
    const bel_program *program;
    bel_kernel_call *calls;
    void **addresses; // by buffer, on the device
    void **bound;     // by buffer what the caller has bound to it, and a run copies; NULL: the
                      // device is in place
    const void **announced;    // by buffer: bel_instance_announce_input
    void **bound_outputs;      // by output
    bool rebound;              // of a program that is bound on the device: addresses have changed
    bel_device_memory *memory; // of the arena
    bel_device_memory *own_memory; // NULL: `memory` is the caller's
    void *on_device;               // what the device has added
    void *resident;                // what the prologue has computed
    bool settled;                  // with the variables that are bound now
    bel_instance_bound inputs, variables, outputs;
    void ***patches;    // operands that hold the address of a buffer from outside, by buffer
    int *first_patches; // by buffer, and one behind
    bel_instance_writer *writers;           // by buffer
    bel_instance_publication *publications; // by call
    int publication_count;
    int *tile_outputs; // by call: the output that its tiles publish, -1: none
    bool plain; // every call has one tile, and none is for a team: they only follow each other
    bel_run_context *context;  // that the calls know
    bel_instance_async *async; // NULL: for the synchronous executor
};

// What a run is told about publication.
typedef struct bel_instance_run_args {
    bel_publish_fn *publish; // NULL: nothing is published
    void *publish_context;
    int part; // of a program with exchanges: how many of them have been made
} bel_instance_run_args;

// Runs a tile, and publishes what it has written if that is published tile by tile.
void bel_instance_run_tile(const bel_instance *instance, const bel_instance_run_args *args,
                           int call, int64_t tile);

// Publishes outputs from publication `*next` on as long as their calls come before `end`; sets
// *next behind them.
void bel_instance_publish(const bel_instance *instance, const bel_instance_run_args *args, int end,
                          int *next);

// The error that `context` has collected, if any.
bel_status *bel_instance_data_error(const bel_program *program, bel_run_context *context);

// --- Asynchronous programs -----------------------------------------------------------------------

bel_instance_async *bel_instance_async_create(const bel_instance *instance);
void bel_instance_async_destroy(bel_instance_async *async);
bel_status *bel_instance_async_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                                   const bel_instance_run_args *args);

#endif
