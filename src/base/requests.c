// Four flags, read and written by themselves, so no order among them is needed. A request may come
// before the job begins (data is read, a model is built): it is kept, and what it means is decided
// when the job says whether it can do without this process.
#include "base/requests.h"

#include <stdatomic.h>

#include "belfry/estimator.h"

static atomic_bool stop, leave, may_leave, stood;
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
}

bool bel_stop_requested(void)
{
    return atomic_load(&stop) || (atomic_load(&leave) && !atomic_load(&may_leave));
}

bool bel_leave_requested(void)
{
    return atomic_load(&leave) && !bel_stop_requested();
}

bool bel_leave_stood(void)
{
    return bel_leave_requested() && atomic_load(&stood);
}

bool bel_end_requested(void)
{
    return atomic_load(&leave) || atomic_load(&stop);
}
