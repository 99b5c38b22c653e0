// Request flags, each read and written independently, so they need no order. A request may come
// before the job begins (data is read, a model is built): it is kept, and its meaning is decided
// when the job declares whether it can continue without this process.
#include "base/requests.h"

#include <stdatomic.h>

#include "belfry/estimator.h"

static atomic_bool stop, leave, may_leave, stood, known;
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler must not take a lock");

void bel_request_stop(void)
{
    atomic_store(&stop, true);
}

void bel_request_leave(void)
{
    atomic_store(&leave, true);
}

void bel_requests_begin(bool can_leave)
{
    atomic_store(&may_leave, can_leave);
    atomic_store(&stood, atomic_load(&leave));
}

void bel_requests_end(void)
{
    atomic_store(&may_leave, false);
    atomic_store(&stood, false);
    atomic_store(&leave, false);
    atomic_store(&stop, false);
    atomic_store(&known, false);
}

// Records that the job knows of a request.
static bool requests_tell(bool requested)
{
    if (requested) atomic_store(&known, true);
    return requested;
}

static bool is_stop(void)
{
    return atomic_load(&stop) || (atomic_load(&leave) && !atomic_load(&may_leave));
}

bool bel_stop_requested(void)
{
    return requests_tell(is_stop());
}

bool bel_leave_requested(void)
{
    return requests_tell(atomic_load(&leave) && !is_stop());
}

bool bel_leave_stood(void)
{
    return bel_leave_requested() && atomic_load(&stood);
}

bool bel_end_requested(void)
{
    return requests_tell(atomic_load(&leave) || atomic_load(&stop));
}

bool bel_request_is_known(void)
{
    return atomic_load(&known);
}
