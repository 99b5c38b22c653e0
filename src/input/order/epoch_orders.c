// A list is made under the lock: other callers meanwhile most likely want the same one. Making it
// takes as long as the numbers of an epoch need, without waiting for a file or a peer. A list lives
// as long as it is referenced: by the two slots here, or by the holds of threads, which outlast a
// slot that was given to another epoch.
#include "input/order/epoch_orders.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"

typedef struct bel_epoch_order {
    atomic_int users;
    int64_t epoch;
    bel_number_list numbers;
} bel_epoch_order;

enum { KEPT = 2 };

struct bel_epoch_orders {
    bel_epoch_order_make *make;
    const void *context;
    pthread_mutex_t mutex;
    bel_epoch_order *kept[KEPT]; // the most recently used one first
};

static void epoch_order_release(bel_epoch_order *order)
{
    if (order == NULL || atomic_fetch_sub(&order->users, 1) > 1) return;
    bel_number_list_deinit(&order->numbers);
    bel_free(order);
}

bel_epoch_orders *bel_epoch_orders_create(bel_epoch_order_make *make, const void *context)
{
    bel_epoch_orders *orders = bel_xcalloc(1, sizeof *orders);
    orders->make = make;
    orders->context = context;
    pthread_mutex_init(&orders->mutex, NULL);
    return orders;
}

void bel_epoch_orders_destroy(bel_epoch_orders *orders)
{
    if (orders == NULL) return;
    for (int i = 0; i < KEPT; i++)
        epoch_order_release(orders->kept[i]);
    pthread_mutex_destroy(&orders->mutex);
    bel_free(orders);
}

// Finds or makes the order of `epoch`, and puts it in the first slot. Called with the lock held.
static bel_status *epoch_orders_find(bel_epoch_orders *orders, int64_t epoch)
{
    bel_epoch_order *first = orders->kept[0], *second = orders->kept[1];
    if (first != NULL && first->epoch == epoch) return NULL;
    if (second != NULL && second->epoch == epoch) {
        orders->kept[0] = second;
        orders->kept[1] = first;
        return NULL;
    }
    bel_number_list numbers = {0};
    bel_status *status = orders->make(orders->context, epoch, &numbers);
    if (status != NULL) {
        bel_number_list_deinit(&numbers);
        return status;
    }
    bel_epoch_order *made = bel_xcalloc(1, sizeof *made);
    made->numbers = numbers;
    made->epoch = epoch;
    atomic_init(&made->users, 1);
    epoch_order_release(second);
    orders->kept[1] = first;
    orders->kept[0] = made;
    return NULL;
}

bel_status *bel_epoch_orders_get(bel_epoch_orders *orders, int64_t epoch, bel_epoch_hold *hold,
                                 const int64_t **out_numbers, size_t *out_count)
{
    if (hold->order == NULL || hold->order->epoch != epoch) {
        bel_epoch_hold_release(hold);
        pthread_mutex_lock(&orders->mutex);
        bel_status *status = epoch_orders_find(orders, epoch);
        if (status == NULL) {
            hold->order = orders->kept[0];
            atomic_fetch_add(&hold->order->users, 1);
        }
        pthread_mutex_unlock(&orders->mutex);
        BEL_TRY(status);
    }
    *out_numbers = hold->order->numbers.items;
    *out_count = hold->order->numbers.count;
    return NULL;
}

void bel_epoch_hold_release(bel_epoch_hold *hold)
{
    epoch_order_release(hold->order);
    hold->order = NULL;
}
