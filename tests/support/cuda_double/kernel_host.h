// Prelude that gcc compiles kernel sources with (-include), instead of NVRTC's built-in
// definitions: the CUDA C++ names that kernels use, and the hooks that -fsanitize=thread puts
// before every memory access (nvrtc.c renames __tsan_NAME to bel_hook_NAME, and memcpy to
// bel_hook_memcpy).
//
// A module is loaded as a shared object and resolves no symbol of the driver's, as the driver may
// be loaded with its symbols hidden. The driver passes it a table of functions (bel_hook_host), and
// reports the running thread in bel_hook_place. Kernels run under the driver's mutex, one thread at
// a time, so __shared__ is a static array. These arrays have a separate section with known bounds.
//
// launch.c also includes the first half. If you change it, increment BEL_HOOK_ABI: kernels that
// were compiled before, and kept in files, are then rejected.
#ifndef CUDA_DOUBLE_KERNEL_HOST_H
#define CUDA_DOUBLE_KERNEL_HOST_H

#include <stddef.h>
#include <stdint.h>

#define BEL_HOOK_ABI 4 // times two, plus one if accesses are checked

typedef struct bel_hook_dim {
    unsigned x, y, z;
} bel_hook_dim;

typedef struct bel_hook_places {
    bel_hook_dim thread, block, block_size, grid_size;
} bel_hook_places;

enum { BEL_HOOK_CAS, BEL_HOOK_EXCHANGE };

typedef struct bel_hook_table {
    void (*read)(const void *at, size_t bytes);
    void (*write)(void *at, size_t bytes);
    void *(*move)(void *to, const void *from, size_t bytes);
    void *(*set)(void *to, int byte, size_t bytes);
    int (*compare)(const void *a, const void *b, size_t bytes);
    void (*barrier)(void);
    int (*atomic)(int *at, int what, int a, int b); // old value; a: CAS's expected
    void (*crooked)(uintptr_t at, size_t alignment);
} bel_hook_table;

#ifdef BEL_CUDA_DOUBLE

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

const int bel_hook_abi = BEL_HOOK_ABI * 2 + BEL_HOOK_CHECKED;
bel_hook_table bel_hook_host;
bel_hook_places bel_hook_place;
extern char __start_bel_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_bel_shared[] __attribute__((weak, visibility("hidden")));
char *const bel_hook_shared[2] = {__start_bel_shared, __stop_bel_shared};

#define BEL_HOOK __attribute__((no_sanitize_thread, noinline, visibility("hidden")))

// A thread's place never changes while it runs, so one read is enough: hence "const".
#define BEL_HOOK_PLACE(name)                                                                       \
    static __attribute__((no_sanitize_thread, noinline, const, unused))                            \
    bel_hook_dim bel_hook_##name(void)                                                             \
    {                                                                                              \
        return bel_hook_place.name;                                                                \
    }
BEL_HOOK_PLACE(thread)
BEL_HOOK_PLACE(block)
BEL_HOOK_PLACE(block_size)
BEL_HOOK_PLACE(grid_size)
#define threadIdx (bel_hook_thread())
#define blockIdx (bel_hook_block())
#define blockDim (bel_hook_block_size())
#define gridDim (bel_hook_grid_size())

#define __shared__ static __attribute__((section("bel_shared")))
#define __global__

BEL_HOOK void bel_hook_barrier(void)
{
    bel_hook_host.barrier();
}
#define __syncthreads() bel_hook_barrier()
#define __threadfence() __asm__ volatile("" ::: "memory")

BEL_HOOK int bel_hook_atomic(int *at, int what, int a, int b)
{
    return bel_hook_host.atomic(at, what, a, b);
}
#define atomicCAS(at, expected, value) bel_hook_atomic(at, BEL_HOOK_CAS, expected, value)
#define atomicExch(at, value) bel_hook_atomic(at, BEL_HOOK_EXCHANGE, 0, value)

// --- Before accesses
#define BEL_HOOK_SIZE(size)                                                                        \
    BEL_HOOK void bel_hook_read##size(const void *at)                                              \
    {                                                                                              \
        bel_hook_host.read(at, size);                                                              \
    }                                                                                              \
    BEL_HOOK void bel_hook_write##size(void *at)                                                   \
    {                                                                                              \
        bel_hook_host.write(at, size);                                                             \
    }                                                                                              \
    BEL_HOOK void bel_hook_read_write##size(void *at)                                              \
    {                                                                                              \
        bel_hook_host.read(at, size);                                                              \
        bel_hook_host.write(at, size);                                                             \
    }                                                                                              \
    BEL_HOOK void bel_hook_unaligned_read##size(const void *at)                                    \
    {                                                                                              \
        bel_hook_host.read(at, size);                                                              \
    }                                                                                              \
    BEL_HOOK void bel_hook_unaligned_write##size(void *at)                                         \
    {                                                                                              \
        bel_hook_host.write(at, size);                                                             \
    }
BEL_HOOK_SIZE(1)
BEL_HOOK_SIZE(2)
BEL_HOOK_SIZE(4)
BEL_HOOK_SIZE(8)
BEL_HOOK_SIZE(16)

BEL_HOOK void bel_hook_read_range(const void *at, size_t bytes)
{
    bel_hook_host.read(at, bytes);
}
BEL_HOOK void bel_hook_write_range(void *at, size_t bytes)
{
    bel_hook_host.write(at, bytes);
}
BEL_HOOK void *bel_hook_memcpy(void *to, const void *from, size_t bytes)
{
    return bel_hook_host.move(to, from, bytes);
}
BEL_HOOK void *bel_hook_memmove(void *to, const void *from, size_t bytes)
{
    return bel_hook_host.move(to, from, bytes);
}
BEL_HOOK void *bel_hook_memset(void *to, int byte, size_t bytes)
{
    return bel_hook_host.set(to, byte, bytes);
}
BEL_HOOK int bel_hook_memcmp(const void *a, const void *b, size_t bytes)
{
    return bel_hook_host.compare(a, b, bytes);
}

// Handler of -fsanitize=alignment, under gcc's name for it. It runs before the code follows a
// pointer that is no multiple of its type's alignment, which is an error on a GPU.
typedef struct bel_hook_mismatch {
    struct {
        const char *file;
        uint32_t line, column;
    } place;
    const void *type;
    unsigned char log_alignment, kind;
} bel_hook_mismatch;
BEL_HOOK void __ubsan_handle_type_mismatch_v1(const bel_hook_mismatch *found, uintptr_t at)
{
    bel_hook_host.crooked(at, (size_t)1 << found->log_alignment);
}

BEL_HOOK void bel_hook_func_entry(void *caller)
{
    (void)caller;
}
BEL_HOOK void bel_hook_func_exit(void)
{
}
BEL_HOOK void bel_hook_init(void)
{
}

#endif
#endif
