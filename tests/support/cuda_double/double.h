// Shared declarations of the stand-in for libcuda.so.1. One mutex guards all of it: an API
// function enters (driver.c), does its work, and leaves. Kernels run inside, one at a time.
//
//   driver.c  devices, contexts, errors, the end of the process
//   memory.c  memory of devices and hosts, and its API
//   shadow.c  accesses to each cell: the checks of accesses
//   order.c   operations, their order, and when they run
//   stream.c  streams, events and the API of queued operations
//   graph.c   captures and graphs
//   launch.c  modules and kernels
//
// Objects that handles point to are never freed, only marked. So a handle of a destroyed object is
// recognized, and ends the process.
#ifndef CUDA_DOUBLE_DOUBLE_H
#define CUDA_DOUBLE_DOUBLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API(name, arguments)                                                                       \
    __attribute__((visibility("default"))) int name arguments;                                     \
    int name arguments

#define ERRORS(ROW)                                                                                \
    ROW(SUCCESS, 0, "no error")                                                                    \
    ROW(ERROR_INVALID_VALUE, 1, "invalid argument")                                                \
    ROW(ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                   \
    ROW(ERROR_NOT_INITIALIZED, 3, "initialization error")                                          \
    ROW(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                \
    ROW(ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                       \
    ROW(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                \
    ROW(ERROR_INVALID_CONTEXT, 201, "invalid device context")                                      \
    ROW(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")  \
    ROW(ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                      \
    ROW(ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")        \
    ROW(ERROR_NOT_FOUND, 500, "named symbol not found")                                            \
    ROW(ERROR_NOT_READY, 600, "device not ready")                                                  \
    ROW(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the memory is registered")      \
    ROW(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                  \
    ROW(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                    \
    ROW(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing") \
    ROW(ERROR_STREAM_CAPTURE_INVALIDATED, 901, "capture failed due to a previous error")           \
    ROW(ERROR_STREAM_CAPTURE_MERGE, 902, "operation would merge two captures")                     \
    ROW(ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not begun in this stream")               \
    ROW(ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has work that was not joined")       \
    ROW(ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency on uncaptured work in another stream")    \
    ROW(ERROR_CAPTURED_EVENT, 907,                                                                 \
        "operation not permitted on an event last recorded in a "                                  \
        "capturing stream")                                                                        \
    ROW(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "capture was not begun in this thread")

#define ERROR_CODE(name, number, text) name = number,
enum { ERRORS(ERROR_CODE) };
#undef ERROR_CODE

enum { MOST_DEVICES = 16, CAPTURE_GLOBAL = 0, CAPTURE_THREAD = 1 };

// Read from the environment at the first cuInit.
typedef struct settings {
    int device_count;
    size_t memory; // bytes of each device
    bool checks, leaks;
    uint64_t seed;
    int lose_device; // -1: none
    int64_t lose_after;
    int hang_device; // -1: none
    int64_t hang_after;
    int flip_device; // -1: none
    int64_t flip_after;
} settings;

extern settings config;

// --- driver.c ------------------------------------------------------------------------------------

typedef struct allocation {
    uint64_t address;
    size_t bytes;
    bool alive;
} allocation;

typedef struct cell cell; // shadow.c

// A device and its primary context. Its memory is one range of addresses. It is readable and
// writable only while operations of the device run.
typedef struct device {
    int index, retained;
    bool lost;
    int64_t executed; // operations
    int64_t received; // copies from other devices
    char *base;       // NULL: no context was ever made
    size_t size;      // range's, a multiple of the usable memory, so that addresses are new
    cell *cells;      // one for each 4 bytes
    uint32_t *owners; // by page: 1 + index of the allocation, dead or alive
    allocation *allocations;
    uint32_t allocation_count, allocation_capacity;
    size_t cursor, used, top, open; // top: bytes of the range used so far; open: accessible ones
    unsigned peers;                 // bits of devices whose memory this one may access
    int left_behind;                // objects of released contexts
} device;

extern device devices[MOST_DEVICES];

typedef enum kind { STREAM, EVENT, MODULE, FUNCTION, GRAPH, GRAPH_EXEC, KINDS } kind;

// Head of every object that a handle points to.
typedef struct object {
    kind what;
    bool alive;
    unsigned number; // counted by kind, from 1
    device *owner;
    struct object *next;
    bool of_library; // kept by another library as long as the context: no leak
} object;

// Ends the process: "cuda double: …" on stderr.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *grow(void *memory, size_t bytes); // realloc that cannot fail

// Begins and ends a call. enter fails without initialization, without a current context, or
// when the device is lost. The mutex is held after failures too.
int enter(device **out_current);
int enter_without_context(void);
int leave(int error);
device *current_device(void);
// Ends the process unless the context is alive.
const device *device_of_context(void *context, const char *call);

void *object_create(kind what, size_t bytes, device *owner);
// Returns a handle's object. Ends the process unless it has that kind, is alive and belongs to
// the device.
void *object_of(void *handle, kind what, const device *current, const char *call);
void object_kill(object *o);

// --- order.c -------------------------------------------------------------------------------------

// Vector clock: the number of earlier operations for every lane of work. A lane is a stream, or
// a stream's part of a graph.
typedef struct vector {
    uint32_t *at;
    uint32_t count;
} vector;

void vector_join(vector *into, const vector *from);
void vector_free(vector *v);

typedef enum work_kind {
    JOIN,
    LAUNCH,
    COPY_IN,
    COPY_OUT,
    COPY_WITHIN,
    COPY_BETWEEN, // `on` may be one of the two devices, or neither
    FILL
} work_kind;

typedef struct function function; // launch.c

typedef struct work {
    work_kind what;
    device *on;
    uint64_t to, from; // device addresses
    char *host_to;
    const char *host_from;
    size_t bytes;
    unsigned char byte;
    bool owns_host_from; // staged
    function *kernel;
    unsigned grid[3], block[3];
    void *arguments; // launch.c's, one block of memory
} work;

void work_copy(work *to, const work *from); // for graphs, which launch their work repeatedly
void work_free(work *w);

// A queued operation, reference-counted.
typedef struct task task;

// A lane, with the last operation queued on it.
typedef struct lane {
    uint32_t component, sequence;
    unsigned stream; // its number, for messages
    vector clock;    // last operation's, with all that it is ordered after
    task *last;      // NULL: all was done
} lane;

void lane_begin(lane *l, unsigned number); // `number` is the stream's
void lane_end(lane *l);
// Orders the lane's next operations after those of the clock and the task (or NULL).
void lane_wait(lane *l, const vector *clock, task *behind);
// Queues the work at the end of the lane, and takes what the work owns.
void lane_append(lane *l, work *w);

task *task_keep(task *t); // accepts NULL too
void task_drop(task *t);
bool task_is_done(const task *t);
int64_t task_done_ns(const task *t); // 0: NULL
int64_t now_ns(void);
// Run operations that are ready, of any stream, until this one is done.
void task_finish(task *t); // never returns if the device hangs
bool task_try(task *t);    // false: its device hangs
// Marks all of the clock's operations as known by the host to be done.
void host_saw(const vector *clock);

// Condition on an operation; any_pending returns whether one that is not done fulfils it.
typedef bool work_test(const work *w, const void *context);
bool any_pending(work_test *test, const void *context);

// For messages: "kernel add (operation 5, stream 1)".
void describe_operation(uint32_t operation, char *out, size_t size);
// Whether an earlier operation is ordered before the owner of the clock.
bool operation_is_before(uint32_t operation, const vector *clock);

// --- memory.c ------------------------------------------------------------------------------------

void memory_begin(device *d);
void memory_end(device *d);
void memory_open(device *d); // stays open until memory_close
void memory_close(void);
// The device whose range holds the address, or NULL.
device *memory_device(uint64_t address);
// The allocation that contains all of the bytes, or NULL.
const allocation *memory_find(const device *d, uint64_t address, size_t bytes);
// Describes the address for messages: " (byte 3 of the allocation of 8 bytes at 0x…)".
void memory_describe(const device *d, uint64_t address, char *out, size_t size);
int memory_alive(const device *d); // number of allocations
bool host_is_registered(const void *memory, size_t bytes);

// --- shadow.c ------------------------------------------------------------------------------------

// The running operation. For a kernel also the running thread and its private memory.
typedef struct runner {
    const work *op;
    device *on;
    uint32_t operation;
    const vector *clock;
    uint32_t block, thread, interval; // interval: counts the barriers passed
    uintptr_t lock;                   // the thread's lock, taken by atomicCAS(lock, 0, 1); or 0
    uintptr_t stack, stack_bytes, arguments, argument_bytes;
    uintptr_t shared, shared_bytes;
    uintptr_t (*own)[2]; // the module's ranges
    int own_count;
    struct shared_cell *shared_cells;
} runner;

extern runner running;

size_t shadow_cell_bytes(void);
size_t shadow_shared_bytes(size_t shared_bytes); // size of shared_cells, which is zeroed
// Records an access of a copy or a fill. Address and bytes are inside an allocation.
void shadow_touch(uint64_t address, size_t bytes, bool writes);
// Records an access of a kernel.
void shadow_access(uintptr_t address, size_t bytes, bool writes);
int shadow_atomic(int *at, int what, int a, int b);
// Writes "kernel add, block (0,0,0), thread (1,0,0),", or the operation as describe_operation does.
void describe_runner(char *out, size_t size);

// --- stream.c ------------------------------------------------------------------------------------

typedef struct capture capture;

typedef struct node_set {
    uint32_t *at;
    uint32_t count;
} node_set;

typedef struct stream {
    object head;
    lane queue;
    capture *in; // NULL: it does not capture
    uint32_t capture_lane;
    node_set ends; // last nodes of the capture: the next one is ordered after them
} stream;

typedef struct event {
    object head;
    bool recorded, timed, asked; // asked: queried since it was recorded
    int64_t recorded_ns;
    task *at; // NULL: the recorded work is done
    vector clock;
    capture *in; // NULL: it was not recorded in a capture
    node_set ends;
} event;

int stream_append(stream *s, work *w); // takes what the work owns
void streams_end(device *d);           // runs the queued operations of a context that ends

// --- graph.c -------------------------------------------------------------------------------------

// Whether a capture forbids the call; if so, breaks the capture.
bool capture_forbids(void);
void capture_break(capture *c);
void capture_leave(stream *s);       // when the stream is destroyed
int capture_add(stream *s, work *w); // takes what the work owns
void capture_record(stream *s, event *e);
int capture_wait(stream *s, event *e); // the stream or the event is, or was, in a capture

// --- launch.c ------------------------------------------------------------------------------------

void kernel_run(const work *w);
const char *kernel_name(const function *f);
size_t kernel_argument_bytes(const function *f);

#endif
