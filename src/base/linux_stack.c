// Contexts of the C library (makecontext), which POSIX 2008 lacks. A call and its return nest as
// any other, so only the address sanitizer needs to know of it. A page without access below the
// stack turns an overflow into the end of the process. The context is made anew for each call,
// because the calls come from different threads.
#define _GNU_SOURCE // ucontext.h, MAP_ANONYMOUS, MAP_STACK
#include "base/linux_stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/alloc.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

struct bel_linux_stack {
    char *memory; // its lowest page is inaccessible
    size_t size_bytes;
    ucontext_t inside, outside;
    void (*function)(void *argument);
    void *argument;
};

static _Thread_local bel_linux_stack *entered; // the stack of the call that begins

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

static void begin_call(void)
{
    bel_linux_stack *stack = entered;
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
    stack->function(stack->argument);
    __sanitizer_start_switch_fiber(NULL, bottom, bytes); // NULL: this call's frames end
#else
    stack->function(stack->argument);
#endif
}

bel_status *bel_linux_stack_create(size_t size_bytes, bel_linux_stack **out_stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_bytes = (size_bytes + page - 1) / page * page + page;
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
        bel_status *status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "a stack of %zu bytes: %s", size_bytes,
                                     strerror(errno));
        if (memory != MAP_FAILED) (void)munmap(memory, size_bytes); // nothing is on it
        return status;
    }
    bel_linux_stack *stack = bel_xcalloc(1, sizeof *stack);
    stack->memory = memory;
    stack->size_bytes = size_bytes;
    *out_stack = stack;
    return NULL;
}

void bel_linux_stack_destroy(bel_linux_stack *stack)
{
    if (stack == NULL) return;
    (void)munmap(stack->memory, stack->size_bytes);
    bel_free(stack);
}

// getcontext and swapcontext fail only for bad pointers.
void bel_linux_stack_call(bel_linux_stack *stack, void (*function)(void *argument), void *argument)
{
    stack->function = function;
    stack->argument = argument;
    (void)getcontext(&stack->inside);
    stack->inside.uc_stack = (stack_t){.ss_sp = stack->memory, .ss_size = stack->size_bytes};
    stack->inside.uc_link = &stack->outside;
    makecontext(&stack->inside, begin_call, 0);
    entered = stack;
#ifdef __SANITIZE_ADDRESS__
    void *fake;
    __sanitizer_start_switch_fiber(&fake, stack->memory, stack->size_bytes);
    (void)swapcontext(&stack->outside, &stack->inside);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    (void)swapcontext(&stack->outside, &stack->inside);
#endif
}
