// Orders without a formula: a list of numbers per epoch, which a function makes on first use. The
// two most recently used epochs are kept, and those that a bel_epoch_hold refers to, as workers and
// threads read around the end of an epoch.
#ifndef BELFRY_INPUT_ORDER_EPOCH_ORDERS_H
#define BELFRY_INPUT_ORDER_EPOCH_ORDERS_H

#include "input/files/number_list.h"

// Thread-safe.
typedef struct bel_epoch_orders bel_epoch_orders;

// Makes the order of an epoch, which depends only on `context` and the epoch.
typedef bel_status *bel_epoch_order_make(const void *context, int64_t epoch,
                                         bel_number_list *out_numbers);

bel_epoch_orders *bel_epoch_orders_create(bel_epoch_order_make *make, const void *context);
void bel_epoch_orders_destroy(bel_epoch_orders *orders); // release all holds first; accepts NULL

// Reference to one epoch's order. Zero-initialize; bound to one thread at a time.
typedef struct bel_epoch_hold {
    struct bel_epoch_order *order;
} bel_epoch_hold;

// Gets the numbers of `epoch`, valid until the next call with this hold. It costs nothing while the
// epoch stays the same. Errors: RESOURCE_EXHAUSTED, and those of `make`.
bel_status *bel_epoch_orders_get(bel_epoch_orders *orders, int64_t epoch, bel_epoch_hold *hold,
                                 const int64_t **out_numbers, size_t *out_count) BEL_MUST_USE;
void bel_epoch_hold_release(bel_epoch_hold *hold); // accepts a zeroed one

#endif
