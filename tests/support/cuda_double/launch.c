// Modules and kernels. A module is a shared object that nvrtc.c made. A kernel is one of its
// functions, and runs one thread.
//
// Threads of a block run one after another, to the end, on a separate stack (a fiber) whose bounds
// the checks know. A thread that reaches a barrier stays on its fiber, and another fiber runs the
// threads after it. When all threads are at the barrier, all resume in turn. So a kernel without
// barriers runs in one loop. If some threads of a block end while others wait, it is an error, as
// it is on a GPU.
//
// This file is compiled without sanitizers, which do not know about the change of stacks.
#include "double.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_host.h"

enum {
    STACK_BYTES = 128 << 10, // preceded by one page without access
    MOST_ARGUMENTS = 16,
    MOST_ARGUMENT_BYTES = 4096, // CUDA's limit
    UNKNOWN_ARGUMENTS = 2,      // for a kernel that does not declare its arguments
    UNKNOWN_BYTES = 1024,
    MOST_RANGES = 8,
    MOST_THREADS = 1024,
};

typedef void kernel_entry(void **arguments);

typedef struct module {
    object head;
    int file; // open as long as the module: dlopen tells objects apart by name
    void *library;
    bel_hook_places *places;
    uintptr_t shared, shared_bytes;
    void *shared_cells;
    uintptr_t ranges[MOST_RANGES][2]; // begin, bytes
    int range_count;
    function *functions;
} module;

struct function {
    object head;
    module *of;
    char *name;
    kernel_entry *entry;
    unsigned sizes[MOST_ARGUMENTS], argument_count;
    bool sizes_are_known;
    function *next;
};

// --- Fibers --------------------------------------------------------------------------------------

// Saves the callee-saved registers and the stack at *out_from, and resumes at `to`.
void bel_cuda_double_switch(void **out_from, void *to) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden bel_cuda_double_switch\n"
        ".globl bel_cuda_double_switch\n"
        ".type bel_cuda_double_switch, @function\n"
        "bel_cuda_double_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size bel_cuda_double_switch, .-bel_cuda_double_switch\n");
enum { FRAME_WORDS = 8, RETURN_WORD = 6 }; // the last word aligns the stack as a call would
#elif defined(__aarch64__)
__asm__(".text\n"
        ".hidden bel_cuda_double_switch\n"
        ".globl bel_cuda_double_switch\n"
        ".type bel_cuda_double_switch, %function\n"
        "bel_cuda_double_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size bel_cuda_double_switch, .-bel_cuda_double_switch\n");
enum { FRAME_WORDS = 20, RETURN_WORD = 11 };
#else
#error "launch.c: the change of stacks is written for x86-64 and aarch64"
#endif

typedef struct fiber {
    char *stack;
    void *kept;
    uint32_t thread;
    uintptr_t lock;
    struct fiber *next;
} fiber;

// The running block. Threads below `next` have begun.
static struct {
    const function *kernel;
    bel_hook_places *places;
    void **arguments;
    uint32_t threads, next, ended;
    fiber *free, *current;
    fiber *waiting, **waiting_end;
    void *scheduler;
} block = {.waiting_end = &block.waiting};

static bel_hook_dim place_of(uint32_t index, bel_hook_dim size)
{
    return (bel_hook_dim){index % size.x, index / size.x % size.y, index / size.x / size.y};
}

static void be_thread(uint32_t thread)
{
    running.thread = thread;
    block.places->thread = place_of(thread, block.places->block_size);
}

// Body of a fiber: runs threads as long as some are left. It is resumed whenever there may be some.
static void run_threads(void)
{
    for (;;) {
        while (block.next < block.threads) {
            be_thread(block.next++);
            running.lock = 0;
            block.kernel->entry(block.arguments);
            block.ended++;
        }
        fiber *self = block.current;
        self->next = block.free;
        block.free = self;
        bel_cuda_double_switch(&self->kept, block.scheduler);
    }
}

static fiber *make_fiber(void)
{
    fiber *f = grow(NULL, sizeof *f);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) != 0)
        die("no memory for the stacks of a block");
    void (*begin)(void) = run_threads;
    void **frame = (void **)(void *)(stack + page + STACK_BYTES) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    memcpy(&frame[RETURN_WORD], &begin, sizeof begin);
    *f = (fiber){.stack = stack + page, .kept = frame};
    return f;
}

static void resume(fiber *f)
{
    block.current = f;
    running.stack = (uintptr_t)f->stack;
    running.stack_bytes = STACK_BYTES;
    bel_cuda_double_switch(&block.scheduler, f->kept);
}

static void wait_at_barrier(void)
{
    fiber *self = block.current;
    self->thread = running.thread;
    self->lock = running.lock;
    self->next = NULL;
    *block.waiting_end = self;
    block.waiting_end = &self->next;
    bel_cuda_double_switch(&self->kept, block.scheduler);
    be_thread(self->thread);
    running.lock = self->lock;
}

static void run_block(void)
{
    block.next = block.ended = 0;
    running.interval = 0;
    while (block.next < block.threads) {
        fiber *f = block.free;
        if (f == NULL)
            f = make_fiber();
        else
            block.free = f->next;
        resume(f);
    }
    while (block.waiting != NULL) {
        if (block.ended > 0) {
            char who[256];
            running.thread = block.waiting->thread;
            describe_runner(who, sizeof who);
            die("%s waits at a barrier that %u threads of the block have not come to: they ended",
                who, block.ended);
        }
        fiber *f = block.waiting;
        block.waiting = NULL;
        block.waiting_end = &block.waiting;
        running.interval++;
        while (f != NULL) {
            fiber *next = f->next;
            resume(f);
            f = next;
        }
    }
}

void kernel_run(const work *w)
{
    static struct {
        void *pointers[MOST_ARGUMENTS];
        _Alignas(16) unsigned char data[MOST_ARGUMENT_BYTES + 16 * MOST_ARGUMENTS];
    } arguments;
    const function *f = w->kernel;
    module *m = f->of;
    size_t offset = 0;
    memcpy(arguments.data, w->arguments, kernel_argument_bytes(f));
    for (unsigned i = 0; i < f->argument_count; i++) {
        arguments.pointers[i] = arguments.data + offset;
        offset += (f->sizes[i] + 15) / 16 * 16;
    }
    running.arguments = (uintptr_t)&arguments;
    running.argument_bytes = sizeof arguments.pointers + offset;
    running.shared = m->shared;
    running.shared_bytes = m->shared_bytes;
    running.shared_cells = m->shared_cells;
    running.own = m->ranges;
    running.own_count = m->range_count;
    m->places->block_size = (bel_hook_dim){w->block[0], w->block[1], w->block[2]};
    m->places->grid_size = (bel_hook_dim){w->grid[0], w->grid[1], w->grid[2]};
    block.kernel = f;
    block.places = m->places;
    block.arguments = arguments.pointers;
    block.threads = w->block[0] * w->block[1] * w->block[2];
    uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2];
    for (uint64_t i = 0; i < blocks; i++) {
        running.block = (uint32_t)i;
        m->places->block = place_of((uint32_t)i, m->places->grid_size);
        run_block();
    }
}

// --- Functions for modules
// ------------------------------------------------------------------------

static void on_read(const void *at, size_t bytes)
{
    shadow_access((uintptr_t)at, bytes, false);
}

static void on_write(void *at, size_t bytes)
{
    shadow_access((uintptr_t)at, bytes, true);
}

static void *on_move(void *to, const void *from, size_t bytes)
{
    shadow_access((uintptr_t)from, bytes, false);
    shadow_access((uintptr_t)to, bytes, true);
    return memmove(to, from, bytes);
}

static void *on_set(void *to, int byte, size_t bytes)
{
    shadow_access((uintptr_t)to, bytes, true);
    return memset(to, byte, bytes);
}

static int on_compare(const void *a, const void *b, size_t bytes)
{
    shadow_access((uintptr_t)a, bytes, false);
    shadow_access((uintptr_t)b, bytes, false);
    return memcmp(a, b, bytes);
}

static void on_crooked(uintptr_t at, size_t alignment)
{
    char who[256];
    describe_runner(who, sizeof who);
    die("%s follows a pointer to 0x%llx, no multiple of %zu", who, (unsigned long long)at,
        alignment);
}

static const bel_hook_table hooks = {on_read,    on_write,        on_move,       on_set,
                                     on_compare, wait_at_barrier, shadow_atomic, on_crooked};

// --- Modules -------------------------------------------------------------------------------------

// Records the segments of the object that contains module->places: they are the module's.
static int find_ranges(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    module *m = context;
    uintptr_t inside = (uintptr_t)m->places;
    bool found = false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const ElfW(Phdr) *p = &info->dlpi_phdr[i];
            if (p->p_type != PT_LOAD) continue;
            uintptr_t begin = info->dlpi_addr + p->p_vaddr;
            if (pass == 0) {
                found = found || inside - begin < p->p_memsz;
            } else if (m->range_count < MOST_RANGES) {
                m->ranges[m->range_count][0] = begin;
                m->ranges[m->range_count++][1] = p->p_memsz;
            }
        }
        if (!found) return 0;
    }
    return 1;
}

// An image does not declare its size, but its table of sections is at its end.
static size_t image_bytes(const void *image)
{
    ElfW(Ehdr) head;
    memcpy(&head, image, SELFMAG);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
    memcpy(&head, image, sizeof head);
    return head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
}

static int open_image(module *m, const void *image)
{
    size_t bytes = image_bytes(image), written = 0;
    if (bytes == 0) return ERROR_INVALID_IMAGE;
    m->file = memfd_create("cuda-double", MFD_CLOEXEC);
    if (m->file < 0) die("memfd_create fails");
    while (written < bytes) {
        ssize_t count = write(m->file, (const char *)image + written, bytes - written);
        if (count <= 0) die("a module cannot be written to memory");
        written += (size_t)count;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (m->library == NULL) return ERROR_INVALID_IMAGE;
    const int *abi = dlsym(m->library, "bel_hook_abi");
    if (abi == NULL || *abi != BEL_HOOK_ABI * 2 + (config.checks ? 1 : 0))
        return ERROR_NO_BINARY_FOR_GPU;
    bel_hook_table *table = dlsym(m->library, "bel_hook_host");
    uintptr_t *shared = dlsym(m->library, "bel_hook_shared");
    m->places = dlsym(m->library, "bel_hook_place");
    if (table == NULL || shared == NULL || m->places == NULL) return ERROR_INVALID_IMAGE;
    *table = hooks;
    m->head.of_library = dlsym(m->library, "bel_double_of_a_library") != NULL;
    m->shared = shared[0];
    m->shared_bytes = shared[1] - shared[0];
    dl_iterate_phdr(find_ranges, m);
    if (m->shared_bytes > 0 && config.checks) {
        size_t cells = shadow_shared_bytes(m->shared_bytes);
        m->shared_cells = grow(NULL, cells);
        memset(m->shared_cells, 0, cells);
    }
    return SUCCESS;
}

static void close_image(module *m)
{
    if (m->library != NULL) dlclose(m->library);
    if (m->file >= 0) close(m->file);
    free(m->shared_cells);
    for (function *f = m->functions; f != NULL; f = f->next)
        object_kill(&f->head);
    object_kill(&m->head);
}

API(cuModuleLoadData, (void **out_module, const void *image))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    module *m = object_create(MODULE, sizeof *m, d);
    m->file = -1;
    error = open_image(m, image);
    if (error == SUCCESS)
        *out_module = m;
    else
        close_image(m);
    return leave(error);
}

static bool uses_module(const work *w, const void *of)
{
    return w->what == LAUNCH && w->kernel->of == of;
}

API(cuModuleUnload, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    module *m = object_of(handle, MODULE, d, __func__);
    if (any_pending(uses_module, m)) die("cuModuleUnload: kernels of the module are not done");
    close_image(m);
    return leave(SUCCESS);
}

// --- Functions -----------------------------------------------------------------------------------

const char *kernel_name(const function *f)
{
    return f->name;
}

size_t kernel_argument_bytes(const function *f)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < f->argument_count; i++)
        bytes += (f->sizes[i] + 15) / 16 * 16;
    return bytes;
}

// Reads bel_double_sizes_NAME, if the module has it: the number of arguments and their sizes.
static void find_sizes(function *f)
{
    char symbol[256];
    snprintf(symbol, sizeof symbol, "bel_double_sizes_%s", f->name);
    const unsigned *sizes = dlsym(f->of->library, symbol);
    f->sizes_are_known = sizes != NULL;
    f->argument_count = sizes != NULL ? sizes[0] : UNKNOWN_ARGUMENTS;
    if (f->argument_count > MOST_ARGUMENTS) die("kernel %s: too many arguments", f->name);
    for (unsigned i = 0; i < f->argument_count; i++)
        f->sizes[i] = sizes != NULL ? sizes[1 + i] : UNKNOWN_BYTES;
    if (kernel_argument_bytes(f) > MOST_ARGUMENT_BYTES)
        die("kernel %s: more than %d bytes of arguments", f->name, MOST_ARGUMENT_BYTES);
}

API(cuModuleGetFunction, (void **out_function, void *handle, const char *name))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    module *m = object_of(handle, MODULE, d, __func__);
    for (function *f = m->functions; f != NULL; f = f->next) {
        if (strcmp(f->name, name) != 0) continue;
        *out_function = f;
        return leave(SUCCESS);
    }
    char symbol[256];
    snprintf(symbol, sizeof symbol, "bel_double_%s", name);
    void *entry = dlsym(m->library, symbol);
    if (entry == NULL) return leave(ERROR_NOT_FOUND);
    function *f = object_create(FUNCTION, sizeof *f, d);
    f->of = m;
    f->name = grow(NULL, strlen(name) + 1);
    memcpy(f->name, name, strlen(name) + 1);
    memcpy(&f->entry, &entry, sizeof entry);
    find_sizes(f);
    f->next = m->functions;
    m->functions = f;
    *out_function = f;
    return leave(SUCCESS);
}

// Copies arguments when a kernel is queued. Arguments of unknown size are copied as far as the
// system can read them, as any memory may follow an argument.
static void *copy_arguments(const function *f, void *const *arguments)
{
    static int memory = -1;
    char *copy = grow(NULL, kernel_argument_bytes(f)), *at = copy;
    for (unsigned i = 0; i < f->argument_count; i++) {
        size_t room = (f->sizes[i] + 15) / 16 * 16;
        if (f->sizes_are_known) {
            memcpy(at, arguments[i], f->sizes[i]);
        } else {
            if (memory < 0) memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
            ssize_t count = pread(memory, at, room, (off_t)(uintptr_t)arguments[i]);
            if (count <= 0) die("cuLaunchKernel: argument %u of %s cannot be read", i, f->name);
        }
        at += room;
    }
    return copy;
}

API(cuLaunchKernel, (void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     void *stream_handle, void **arguments, void **extra))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    function *f = object_of(handle, FUNCTION, d, __func__);
    stream *s = object_of(stream_handle, STREAM, d, __func__);
    if (shared_bytes > 0) die("kernel %s: dynamic shared memory is not supported", f->name);
    if (extra != NULL) die("kernel %s: arguments in `extra` are not supported", f->name);
    uint64_t threads = (uint64_t)block_x * block_y;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > INT32_MAX || grid_y > UINT16_MAX ||
        grid_z > UINT16_MAX || block_x > MOST_THREADS || block_y > MOST_THREADS || block_z > 64 ||
        threads * block_z == 0 || threads * block_z > MOST_THREADS)
        return leave(ERROR_INVALID_VALUE);
    work w = {.what = LAUNCH,
              .on = d,
              .kernel = f,
              .grid = {grid_x, grid_y, grid_z},
              .block = {block_x, block_y, block_z},
              .arguments = copy_arguments(f, arguments)};
    return leave(stream_append(s, &w));
}
