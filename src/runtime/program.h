// Programs: a graph compiled for closed shapes into a list of kernel calls with every address
// known.
//
//   compile  graph + shapes → program   (immutable, shared by towers of equal shapes)
//   bind     program + memory → instance (one per tower)
//   run      instance + team            (allocates nothing)
//
// A program of a graph with collectives (ops/collective.h) stops where replicas exchange: it is run
// part by part, and between part e and part e + 1 the caller has the instances of all replicas and
// fills in what exchange e gives each of them. Between its parts an instance's arena is its own.
#ifndef BELFRY_RUNTIME_PROGRAM_H
#define BELFRY_RUNTIME_PROGRAM_H

#include "base/thread.h"
#include "belfry/run.h"
#include "graph/graph.h"
#include "runtime/future.h"

typedef struct bel_program bel_program;
typedef struct bel_instance bel_instance;
typedef struct bel_device bel_device; // runtime/device.h

// Memory of a device. `user` is the instance that has left variables and constants there; one that
// finds another there brings its own again.
typedef struct bel_device_memory {
    void *address;
    size_t bytes;
    const void *user;
} bel_device_memory;

// What a program computes. An external output is written to memory that the caller binds (gradients
// go straight into a report); others stay in the arena until the next run.
typedef struct bel_program_output {
    bel_value *value;
    bool external;
} bel_program_output;

typedef struct bel_program_options {
    bel_device *device;    // that will run it; it must outlive the program. NULL: the CPU
    bool reference;        // plain kernels only
    bool openblas;         // multiplies matrices; it must be open (base/openblas.h)
    bel_gpu_math gpu_math; // how a card multiplies
    bool no_reuse;         // every value keeps memory of its own: for tests of the plan
    bool no_groups;        // every call waits for the one before it
    bool asynchronous; // for the asynchronous executor: a call waits for those alone that it needs
    // Elements of a variable stay as they are while it is bound to one address, as in evaluation:
    // what depends on them alone is computed once (by the synchronous executor).
    bool fixed_variables;
    // Of a device that is not in place: variables and external outputs are bound where they lie in
    // its own memory, and nothing of them is copied: what bel_instance_output gives of them nobody
    // but the device can follow. Outputs are published at the end of a run.
    bool on_device;
    // Sums may be made in another order where that is faster: products of few rows and little work
    // in four chains, convolutions of 3 × 3 whose weights stay as they are by Winograd's way
    // (ops/kernels/winograd.h). It rounds otherwise, on every processor alike.
    bool fast_math;
    unsigned passes_off; // bits (1 << bel_pass)
    // What the arena may take at most; 0: as much as it needs. Values are computed again rather
    // than kept where that is necessary (passes/recompute.h), with the same bits. Not for
    // asynchronous programs, whose calls have no order.
    size_t memory_bytes;
    int threads; // of the team; the bits depend on it with BELFRY_FAULT=threads2 alone
} bel_program_options;

// `input_shapes` are closed, in the order of the graph's inputs. The graph goes through the passes
// (passes/passes.h) first. Values that no output needs are not computed. The program does not keep
// the graph, but constants live in the graph: it must stay. Errors: those of bel_passes_run;
// RESOURCE_EXHAUSTED: more memory is needed than the options allow. UNIMPLEMENTED: the device
// cannot run an operation, which is named with its node.
bel_status *bel_program_compile(const bel_graph *graph, const bel_shape *input_shapes,
                                const bel_program_output *outputs, int output_count,
                                const bel_program_options *options,
                                bel_program **out_program) BEL_MUST_USE;
void bel_program_destroy(bel_program *program);

size_t bel_program_arena_bytes(const bel_program *program);
int bel_program_instruction_count(const bel_program *program);
int bel_program_group_count(
    const bel_program *program); // instructions of one do not depend on each other

// The first instructions, which a run leaves out when no variable has another address than in the
// run before.
int bel_program_prologue_count(const bel_program *program);

// The most that is alive at any moment: no plan needs less than this.
size_t bel_program_live_bytes(const bel_program *program);

// "conv/y f32[32,64,56,56] 24.5 MiB, …": the values that take most of the arena, for people. `text`
// is returned.
enum { BEL_PROGRAM_LARGEST_TEXT = 400 };
const char *bel_program_largest_text(const bel_program *program,
                                     char text[BEL_PROGRAM_LARGEST_TEXT]);

// Sets out_read of each variable that the instructions of a group read; the others are left alone.
void bel_program_mark_variables(const bel_program *program, int group, bool *out_read);
void bel_program_mark_shown(const bel_program *program, bool *out_shown); // that outputs are

// What an instruction is, for people. `cost_ns` is what the program expects of it on one thread
// (runtime/cost.h). Texts live as long as the program.
typedef struct bel_program_line {
    int group;
    const char *name, *op;
    bel_shape shape;        // of its first output …
    bool half;              // … which lies as bfloat16
    int64_t tiles, cost_ns; // on a card launches of kernels; nothing is expected there: 0
} bel_program_line;
bel_program_line bel_program_line_at(const bel_program *program, int instruction);

// Operations that are run again to save memory.
int bel_program_repeated_count(const bel_program *program);

// Copies the calls, makes room for what the prologue computes, and points them into `arena`
// (bel_program_arena_bytes, 64-byte aligned), which several instances of one tower may share. The
// program and the arena must outlive the instance. For the CPU.
bel_instance *bel_instance_create(const bel_program *program, void *arena);

// Memory for an instance, on the program's device. RESOURCE_EXHAUSTED: names what was asked for,
// what is there and the largest values of the plan.
bel_status *bel_program_allocate(const bel_program *program,
                                 bel_device_memory *out_memory) BEL_MUST_USE;
void bel_program_release(const bel_program *program, bel_device_memory *memory);

// An instance on the program's device, in such memory, which several of one tower may share. The
// program and the memory must outlive the instance. Errors: the device's.
bel_status *bel_instance_create_on(const bel_program *program, bel_device_memory *memory,
                                   bel_instance **out_instance) BEL_MUST_USE;
void bel_instance_destroy(bel_instance *instance);

// Addresses from outside; each must be set before the first run and may change between runs.
void bel_instance_bind_input(bel_instance *instance, int input, const void *data);

// What will be bound as this input in the run after the next one, with no run of another instance
// in the same memory between: a device that copies inputs may bring it while the next one computes.
// It stays as it is until then. Forgotten after that run; NULL: nothing.
void bel_instance_announce_input(bel_instance *instance, int input, const void *data);
void bel_instance_bind_variable(bel_instance *instance, int variable, const void *data);
void bel_instance_bind_output(bel_instance *instance, int output, void *data);

// Memory that will be bound, or not any more (before it is unmapped): copies from and to it become
// faster, if the device can.
void bel_device_pin(bel_device *device, const void *memory, size_t bytes, bool pins);

// A run there has failed by the device's own fault: no other one of this process can succeed.
bool bel_device_is_lost(const bel_device *device);

// Output `output`, in memory that the caller may read; valid until the next run.
bel_tensor bel_instance_output(const bel_instance *instance, int output);

// Elements [first, first + count) of an external output are written for good. Called on the threads
// of the team: for parts of an output as they are done where its kernel writes them one after
// another, for the whole of others behind their group of instructions. All calls together cover
// each output once.
typedef void bel_publish_fn(void *context, int output, int64_t first, int64_t count);

// Runs all instructions `runs` times, one after the other on this thread or on the card, and says
// the shortest time of each, in nanoseconds, and of all together: on the CPU their sum, on a card
// as a run replays them, without copies to and from it. What exchanges would have brought is of no
// meaning. Errors as of bel_instance_run.
bel_status *bel_instance_profile(bel_instance *instance, bel_run_context *context, int runs,
                                 int64_t *out_ns, int64_t *out_all_ns) BEL_MUST_USE;

// Runs all instructions. OUT_OF_RANGE: a label or index was out of range; names the operation, the
// first one of the program if there are several. An asynchronous program then leaves out what
// depends on a failed operation, and does not publish it. CANCELLED: see bel_instance_cancel.
// FAILED_PRECONDITION: the program has exchanges.
bel_status *bel_instance_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                             bel_publish_fn *publish, void *publish_context) BEL_MUST_USE;

// Groups [first, end) of a synchronous program without fixed variables and without exchanges, for
// whoever binds variables from group to group; all groups in their order are a run. Else as
// bel_instance_run.
bel_status *bel_instance_run_groups(bel_instance *instance, int first, int end, bel_team *team,
                                    bel_run_context *context) BEL_MUST_USE;
const bel_program *bel_instance_program(const bel_instance *instance);

// --- Exchanges -----------------------------------------------------------------------------------

// One collective as one replica sees it. The tensors lie in the instance; `output` is written by
// the caller.
typedef struct bel_exchange_part {
    const bel_collective *what;
    bel_tensor input, output;
} bel_exchange_part;

int bel_program_exchange_count(const bel_program *program);
int bel_instance_exchange_parts(const bel_instance *instance, int exchange); // how many

// Part `part` of an exchange, in the order of the graph's collectives.
bel_exchange_part bel_instance_exchange_part(const bel_instance *instance, int exchange, int part);

// Runs part `part`, 0 to exchange_count, after all before it and their exchanges. Otherwise as
// bel_instance_run, which is for programs of one part.
bel_status *bel_instance_run_part(bel_instance *instance, int part, bel_team *team,
                                  bel_run_context *context, bel_publish_fn *publish,
                                  void *publish_context) BEL_MUST_USE;

// --- Asynchronous programs -----------------------------------------------------------------------

// Of asynchronous programs: the future of output `output`, which is settled as soon as that is
// written. A leaf has none: NULL.
bel_future *bel_instance_future(bel_instance *instance, int output);

// Of asynchronous programs, any thread: the run that is under way, or else the next one, begins no
// more instructions.
void bel_instance_cancel(bel_instance *instance);

#endif
