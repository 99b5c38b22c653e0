// What the parts of the stand-in for libcuda.so.1 share. One mutex guards all of it: an API
// function enters (driver.c), does its work, and leaves; kernels run inside, one at a time.
//
//   driver.c  devices, contexts, errors, the end of the process
//   memory.c  memory of devices and hosts, and the API of it
//   shadow.c  who touched which cell: the checks of accesses
//   order.c   operations, the order they are bound to, and when they run
//   stream.c  streams, events and the API of what is queued
//   graph.c   captures and graphs
//   launch.c  modules and kernels
//
// Objects that handles point to are never freed, only marked: a handle of something destroyed is
// told from a living one, and ends the process.
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

// From the environment, when cuInit is called first.
typedef struct settings {
    int device_count;
    size_t memory; // of a device, in bytes
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

// A device and its primary context. Its memory is one range of addresses, open to reading and
// writing only while operations of it run.
typedef struct device {
    int index, retained;
    bool lost;
    int64_t executed; // operations
    int64_t received; // copies from other devices
    char *base;       // NULL: no context was ever made
    size_t size;      // of the range: a multiple of what can be used, so that addresses are new
    cell *cells;      // one for 4 bytes
    uint32_t *owners; // of pages: 1 + index of the allocation, dead or alive
    allocation *allocations;
    uint32_t allocation_count, allocation_capacity;
    size_t cursor, used, top, open; // top: bytes of the range that were ever used; open: that are
    unsigned peers;                 // bits of devices whose memory may be reached from here
    int left_behind;                // objects of contexts that were released
} device;

extern device devices[MOST_DEVICES];

typedef enum kind { STREAM, EVENT, MODULE, FUNCTION, GRAPH, GRAPH_EXEC, KINDS } kind;

// What every handle points to.
typedef struct object {
    kind what;
    bool alive;
    unsigned number; // counted by kind, from 1
    device *owner;
    struct object *next;
    bool of_library; // what another library keeps for as long as the context: no leak
} object;

// Ends the process: "cuda double: …" on stderr.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *grow(void *memory, size_t bytes); // realloc that cannot fail

// Begins and ends a call. enter fails without initialization, a current context, or when the
// device is lost; the mutex is held after failures too.
int enter(device **out_current);
int enter_without_context(void);
int leave(int error);
device *current_device(void);
// Ends the process where it is none that lives.
const device *device_of_context(void *context, const char *call);

void *object_create(kind what, size_t bytes, device *owner);
// What a handle means: of that kind, alive, and of the device, or the process ends.
void *object_of(void *handle, kind what, const device *current, const char *call);
void object_kill(object *o);

// --- order.c -------------------------------------------------------------------------------------

// A vector clock: of every lane of work (a stream, a stream's part of a graph) the number of
// operations that came before.
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
    COPY_BETWEEN, // two devices, of which `on` may be either, or neither
    FILL
} work_kind;

typedef struct function function; // launch.c

typedef struct work {
    work_kind what;
    device *on;
    uint64_t to, from; // addresses of the device
    char *host_to;
    const char *host_from;
    size_t bytes;
    unsigned char byte;
    bool owns_host_from; // staged
    function *kernel;
    unsigned grid[3], block[3];
    void *arguments; // launch.c's, one block of memory
} work;

void work_copy(work *to, const work *from); // for graphs, that launch theirs again and again
void work_free(work *w);

// An operation that was queued. Counted references.
typedef struct task task;

// A lane and the end of what was queued on it.
typedef struct lane {
    uint32_t component, sequence;
    unsigned stream; // its number, for messages
    vector clock;    // of the last operation, and of all that it is ordered behind
    task *last;      // NULL: all was done
} lane;

void lane_begin(lane *l, unsigned number); // the stream's
void lane_end(lane *l);
// Orders what comes next in the lane behind what the clock and the task (or NULL) stand for.
void lane_wait(lane *l, const vector *clock, task *behind);
// Queues the work behind what is in the lane; takes what the work owns.
void lane_append(lane *l, work *w);

task *task_keep(task *t); // takes NULL too
void task_drop(task *t);
bool task_is_done(const task *t);
int64_t task_done_ns(const task *t); // 0: NULL
int64_t now_ns(void);
// Runs operations, of any stream whose turn it may be, until this one is done.
void task_finish(task *t); // never returns where the device hangs
bool task_try(task *t);    // false: its device hangs
// All that the clock stands for is now known to be done by the host.
void host_saw(const vector *clock);

// Whether operations that are not done fulfil the condition.
typedef bool work_test(const work *w, const void *context);
bool any_pending(work_test *test, const void *context);

// For messages: "kernel add (operation 5, stream 1)".
void describe_operation(uint32_t operation, char *out, size_t size);
// Whether an earlier operation is ordered before whoever has the clock.
bool operation_is_before(uint32_t operation, const vector *clock);

// --- memory.c ------------------------------------------------------------------------------------

void memory_begin(device *d);
void memory_end(device *d);
void memory_open(device *d); // until memory_close
void memory_close(void);
// The device whose range holds the address, or NULL.
device *memory_device(uint64_t address);
// The allocation that holds all of it; NULL otherwise.
const allocation *memory_find(const device *d, uint64_t address, size_t bytes);
// Where the address is, for messages: " (byte 3 of the allocation of 8 bytes at 0x…)".
void memory_describe(const device *d, uint64_t address, char *out, size_t size);
int memory_alive(const device *d); // allocations
bool host_is_registered(const void *memory, size_t bytes);

// --- shadow.c ------------------------------------------------------------------------------------

// Who runs: an operation, and where it is a kernel, which thread and where its own memory is.
typedef struct runner {
    const work *op;
    device *on;
    uint32_t operation;
    const vector *clock;
    uint32_t block, thread, interval; // in order, intervals between barriers
    uintptr_t lock;                   // of the thread's, taken by atomicCAS(lock, 0, 1); or 0
    uintptr_t stack, stack_bytes, arguments, argument_bytes;
    uintptr_t shared, shared_bytes;
    uintptr_t (*own)[2]; // ranges of the module
    int own_count;
    struct shared_cell *shared_cells;
} runner;

extern runner running;

size_t shadow_cell_bytes(void);
size_t shadow_shared_bytes(size_t shared_bytes); // what shared_cells needs, zeroed
// Of a copy or a fill: address and bytes are inside of an allocation.
void shadow_touch(uint64_t address, size_t bytes, bool writes);
// Of a kernel.
void shadow_access(uintptr_t address, size_t bytes, bool writes);
int shadow_atomic(int *at, int what, int a, int b);
// "kernel add, block (0,0,0), thread (1,0,0),", or the operation as describe_operation says it.
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
    node_set ends; // of the capture: what comes next is ordered behind these nodes
} stream;

typedef struct event {
    object head;
    bool recorded, timed, asked; // asked for since it was recorded
    int64_t recorded_ns;
    task *at; // NULL: what it recorded is done
    vector clock;
    capture *in; // NULL: it was not recorded in a capture
    node_set ends;
} event;

int stream_append(stream *s, work *w); // takes what the work owns
void streams_end(device *d);           // runs what is queued, of a context that ends

// --- graph.c -------------------------------------------------------------------------------------

// Whether a capture forbids the call; it is broken then.
bool capture_forbids(void);
void capture_break(capture *c);
void capture_leave(stream *s);       // one that is destroyed
int capture_add(stream *s, work *w); // takes what the work owns
void capture_record(stream *s, event *e);
int capture_wait(stream *s, event *e); // one of the two captures, or did

// --- launch.c ------------------------------------------------------------------------------------

void kernel_run(const work *w);
const char *kernel_name(const function *f);
size_t kernel_argument_bytes(const function *f);

#endif
