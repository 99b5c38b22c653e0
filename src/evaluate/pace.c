// The smallest delay and the smallest pause of all evaluations count: they run together, on one
// version, so an evaluation with a longer pause also runs more often than it asks. Both are real
// time. The begin is this process's, not the job's: after a restart the delay passes again.
#include "evaluate/pace.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"

bool bel_eval_pace_is_time(bel_eval_pace *pace, const bel_eval_spec *evals, int count)
{
    double delay = INFINITY, throttle = INFINITY;
    int64_t now = bel_clock_ns();
    for (int i = 0; i < count; i++) {
        delay = fmin(delay, evals[i].start_delay_secs);
        throttle = fmin(throttle, evals[i].throttle_secs);
    }
    if (count == 0) return true;
    if (!pace->said)
        bel_log_write(BEL_LOG_DEBUG, "evaluations begin after %g s, at least %g s apart", delay,
                      throttle);
    pace->said = true;
    if ((double)(now - pace->begun_ns) * 1e-9 < delay) return false;
    return pace->last_ns == 0 || (double)(now - pace->last_ns) * 1e-9 >= throttle;
}
