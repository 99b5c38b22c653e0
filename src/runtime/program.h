// Program: a graph compiled for closed shapes into a list of kernel calls with every address known.
//
//   compile  graph + shapes → program   (immutable, shared by towers of equal shapes)
//   bind     program + memory → instance (one per tower)
//   run      instance + team            (allocates nothing)
//
// A program of a graph with collectives (ops/collective.h) stops at each exchange of the replicas:
// it is run part by part. Between part e and part e + 1 the caller reads the instances of all
// replicas and fills in the results of exchange e. Between its parts an instance does not share its
// arena.
#ifndef BELFRY_RUNTIME_PROGRAM_H
#define BELFRY_RUNTIME_PROGRAM_H

#include "base/thread.h"
#include "belfry/run.h"
#include "graph/graph.h"
#include "runtime/future.h"

typedef struct bel_program bel_program;
typedef struct bel_instance bel_instance;
typedef struct bel_device bel_device; // runtime/device.h

// Memory of a device. `user` is the instance whose variables and constants are there; an instance
// that finds another user copies its values again.
typedef struct bel_device_memory {
    void *address;
    size_t bytes;
    const void *user;
} bel_device_memory;

// A value that a program computes. An external output is written to memory that the caller binds
// (gradients go straight into a report); others stay in the arena until the next run.
typedef struct bel_program_output {
    bel_value *value;
    bool external;
} bel_program_output;

typedef struct bel_program_options {
    bel_device *device; // runs the program and must outlive it; NULL: the CPU
    bool reference;     // plain kernels only
    bool openblas;      // multiplies matrices with OpenBLAS, which must be open (base/openblas.h)
    bel_gpu_math gpu_math; // how a GPU multiplies
    bool no_reuse;         // every value keeps separate memory: for tests of the plan
    bool no_groups;        // every call waits for the one before it
    bool asynchronous; // for the asynchronous executor: a call waits only for those that it needs
    // Elements of a variable do not change while it is bound to one address, as in evaluation.
    // Values that depend only on variables are computed once (by the synchronous executor).
    bool fixed_variables;
    // For a device that is not in place: the caller binds variables and external outputs in device
    // memory, and they are not copied. Only the device can read the data of their
    // bel_instance_output. Outputs are published at the end of a run.
    bool on_device;
    // Sums may be made in another order where that is faster. Products of few rows and little work
    // use four chains; 3 × 3 convolutions with fixed weights use Winograd's algorithm
    // (ops/kernels/winograd.h). The rounding differs, in the same way on every processor.
    bool fast_math;
    // The batch has the examples of this number of requests, all of the same shape; 0: of one.
    // Products are rounded as in the run of one request, whatever their number of rows.
    int64_t joined;
    unsigned passes_off; // bits (1 << bel_pass)
    // Most bytes of the arena; 0: no limit. If necessary, values are computed again instead of kept
    // (passes/recompute.h), with the same bits. Not for asynchronous programs, whose calls have no
    // order.
    size_t memory_bytes;
    int threads; // team's size; the bits depend on it only with BELFRY_FAULT=threads2
} bel_program_options;

// `input_shapes` are closed, in the order of the graph's inputs. The graph goes through the passes
// (passes/passes.h) first. Values that no output needs are not computed. The program does not keep
// the graph, but it uses the graph's constants: the graph must outlive it. Errors: those of
// bel_passes_run. RESOURCE_EXHAUSTED: more memory is needed than the options allow. UNIMPLEMENTED:
// the device cannot run an operation, which is named with its node.
bel_status *bel_program_compile(const bel_graph *graph, const bel_shape *input_shapes,
                                const bel_program_output *outputs, int output_count,
                                const bel_program_options *options,
                                bel_program **out_program) BEL_MUST_USE;
void bel_program_destroy(bel_program *program);

size_t bel_program_arena_bytes(const bel_program *program);
int bel_program_instruction_count(const bel_program *program);
int bel_program_group_count(
    const bel_program *program); // instructions of one do not depend on each other

// Number of instructions at the start that a run skips if every variable has the address of the run
// before.
int bel_program_prologue_count(const bel_program *program);

// Largest number of bytes alive at any moment: no plan needs less.
size_t bel_program_live_bytes(const bel_program *program);

// "conv/y f32[32,64,56,56] 24.5 MiB, …": the largest values of the arena, for people. Returns
// `text`.
enum { BEL_PROGRAM_LARGEST_TEXT = 400 };
const char *bel_program_largest_text(const bel_program *program,
                                     char text[BEL_PROGRAM_LARGEST_TEXT]);

// Sets out_read of each variable that the instructions of a group read, and leaves the others.
void bel_program_mark_variables(const bel_program *program, int group, bool *out_read);
// Sets out_shown of each variable that is an output.
void bel_program_mark_shown(const bel_program *program, bool *out_shown);

// Description of an instruction, for people. `cost_ns` is its expected time on one thread
// (runtime/cost.h). Texts live as long as the program.
typedef struct bel_program_line {
    int group;
    const char *name, *op;
    bel_shape shape;        // first output's …
    bool bf16;              // … which is stored as bf16
    int64_t tiles, cost_ns; // on a GPU: kernel launches; its expected cost is 0
} bel_program_line;
bel_program_line bel_program_line_at(const bel_program *program, int instruction);

// Number of operations that are run again to save memory.
int bel_program_repeated_count(const bel_program *program);

// Copies the calls, allocates the results of the prologue, and points the calls into `arena`
// (bel_program_arena_bytes, 64-byte aligned). Several instances of one tower may share the arena.
// The program and the arena must outlive the instance. For the CPU.
bel_instance *bel_instance_create(const bel_program *program, void *arena);

// Allocates memory for an instance, on the program's device. RESOURCE_EXHAUSTED: names the bytes
// requested, the bytes there, and the largest values of the plan.
bel_status *bel_program_allocate(const bel_program *program,
                                 bel_device_memory *out_memory) BEL_MUST_USE;
void bel_program_release(const bel_program *program, bel_device_memory *memory);

// Creates an instance on the program's device, in such memory, which several instances of one tower
// may share. The program and the memory must outlive the instance. Errors: the device's.
bel_status *bel_instance_create_on(const bel_program *program, bel_device_memory *memory,
                                   bel_instance **out_instance) BEL_MUST_USE;
void bel_instance_destroy(bel_instance *instance);

// The caller's addresses. Each must be set before the first run and may change between runs.
void bel_instance_bind_input(bel_instance *instance, int input, const void *data);

// Announces the input of the run after the next one, so that a device that copies inputs may copy
// it while the next run computes. No other instance may run in the same memory between. `data` must
// not change until then. Forgotten after that run; NULL: nothing is announced.
void bel_instance_announce_input(bel_instance *instance, int input, const void *data);
void bel_instance_bind_variable(bel_instance *instance, int variable, const void *data);
void bel_instance_bind_output(bel_instance *instance, int output, void *data);

// Pins memory that will be bound, or unpins it (before it is unmapped). Copies from and to pinned
// memory are faster, if the device can.
void bel_device_pin(bel_device *device, const void *memory, size_t bytes, bool pins);

// True after a run failed by the device's own fault: no other run of this process there can
// succeed.
bool bel_device_is_lost(const bel_device *device);

// Output `output`, in memory that the caller may read. Valid until the next run.
bel_tensor bel_instance_output(const bel_instance *instance, int output);

// Reports that elements [first, first + count) of an external output are final. Called on the
// threads of the team. If the kernel writes an output in order, its parts are reported as they are
// done. Other outputs are reported as a whole after their group of instructions. All calls together
// cover each output once.
typedef void bel_publish_fn(void *context, int output, int64_t first, int64_t count);

// Runs all instructions `runs` times, one after the other, on this thread or on the GPU. Gives the
// shortest time of each, in nanoseconds, and of all together. On the CPU that is their sum; on a
// GPU it is the time of a replayed run, without copies to and from it. Results of exchanges are
// meaningless. Errors: as of bel_instance_run.
bel_status *bel_instance_profile(bel_instance *instance, bel_run_context *context, int runs,
                                 int64_t *out_ns, int64_t *out_all_ns) BEL_MUST_USE;

// Runs all instructions. OUT_OF_RANGE: a label or index was out of range; names the operation, the
// first one of the program if there are several. An asynchronous program then skips the operations
// that depend on a failed one, and does not publish them. CANCELLED: see bel_instance_cancel.
// FAILED_PRECONDITION: the program has exchanges.
bel_status *bel_instance_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                             bel_publish_fn *publish, void *publish_context) BEL_MUST_USE;

// Runs groups [first, end) of a synchronous program without fixed variables and without exchanges,
// for a caller that binds variables from group to group. All groups in their order are one run.
// Otherwise as bel_instance_run.
bel_status *bel_instance_run_groups(bel_instance *instance, int first, int end, bel_team *team,
                                    bel_run_context *context) BEL_MUST_USE;
const bel_program *bel_instance_program(const bel_instance *instance);

// --- Exchanges -----------------------------------------------------------------------------------

// One collective as one replica sees it. The tensors are in the instance; the caller writes
// `output`.
typedef struct bel_exchange_part {
    const bel_collective *what;
    bel_tensor input, output;
} bel_exchange_part;

int bel_instance_exchange_parts(const bel_instance *instance, int exchange); // number of parts

// Part `part` of an exchange, in the order of the graph's collectives.
bel_exchange_part bel_instance_exchange_part(const bel_instance *instance, int exchange, int part);

// Runs part `part`, 0 to exchange_count, after all parts before it and their exchanges. Otherwise
// as bel_instance_run, which is for programs of one part.
bel_status *bel_instance_run_part(bel_instance *instance, int part, bel_team *team,
                                  bel_run_context *context, bel_publish_fn *publish,
                                  void *publish_context) BEL_MUST_USE;

// --- Asynchronous programs -----------------------------------------------------------------------

// The future of output `output` of an asynchronous program, settled as soon as the output is
// written. NULL: the output is a leaf.
bel_future *bel_instance_future(bel_instance *instance, int output);

// Stops the current run of an asynchronous program, or else the next one, from starting more
// instructions. Any thread.
void bel_instance_cancel(bel_instance *instance);

#endif
