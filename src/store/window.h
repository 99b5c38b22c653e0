// Window over the parts of a transfer, on the threads of bel_store_begin: at most `width` run at
// once, and after an error no further one begins.
#ifndef BELFRY_STORE_WINDOW_H
#define BELFRY_STORE_WINDOW_H

#include <stddef.h>

#include "belfry/status.h"

// Serves part `index`, with the patience and permission of the thread that runs the window.
typedef bel_status *bel_window_part(void *context, size_t index);

// Serves the parts 0 … count-1, and returns the first error. `take` (NULL: not wanted) is called
// for each part in order on the caller's thread after it is served; at most `width` parts are
// served and not taken yet, so part i may use a place that part i-width has left.
bel_status *bel_window_run(size_t count, size_t width, bel_window_part *serve,
                           bel_window_part *take, void *context) BEL_MUST_USE;

#endif
