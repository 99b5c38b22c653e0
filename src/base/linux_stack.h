// Second stack of a thread, for a call that needs more room than the thread's stack has: threads
// that a library started may have 100 KB. The call stays on its thread.
#ifndef BELFRY_BASE_LINUX_STACK_H
#define BELFRY_BASE_LINUX_STACK_H

#include <stddef.h>

#include "belfry/status.h"

typedef struct bel_linux_stack bel_linux_stack;

// `size_bytes`: at least 64 KiB; memory is taken when it is touched. An overflow ends the process.
// RESOURCE_EXHAUSTED: no address space.
bel_status *bel_linux_stack_create(size_t size_bytes, bel_linux_stack **out_stack) BEL_MUST_USE;
void bel_linux_stack_destroy(bel_linux_stack *stack); // no call is on it; accepts NULL

// Calls function(argument) on the stack and returns when it has returned. One call at a time; each
// may come from another thread. Calls on several stacks nest.
void bel_linux_stack_call(bel_linux_stack *stack, void (*function)(void *argument), void *argument);

#endif
