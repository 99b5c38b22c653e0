// Learning rates by step, and the checks of their settings. A schedule is a pure function of the
// step number, computed in double on every shard alike, so that a resumed run and any number of
// shards see the same rates.
#include <math.h>

#include "base/real.h"
#include "optim/rule.h"

static int piece_count(const bel_schedule *schedule)
{
    int count = 0;
    while (count < BEL_SCHEDULE_MAX_PIECES && schedule->rates[count] != 0)
        count++;
    return count;
}

// Rates end at the first 0, and what stands behind the end of either list was meant to count.
bel_status *bel_pieces_check(const bel_schedule *schedule)
{
    int count = piece_count(schedule);
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES; i++) {
        double rate = schedule->rates[i];
        bool used = i == 0 || i < count;
        if (used ? rate > 0 && rate <= 1e6 : rate == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: rates[%d] of the schedule must be above 0, got %g", i,
                       used ? rate : 0);
    }
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES - 1; i++) {
        int64_t boundary = schedule->boundaries[i];
        if (i >= count - 1 && boundary != 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "optimizer: %d rates need %d boundaries, but there is boundaries[%d] "
                           "with %lld",
                           count, count - 1, i, (long long)boundary);
        }
        int64_t before = i > 0 ? schedule->boundaries[i - 1] : -1;
        if (i >= count - 1 || boundary > before) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: boundaries of the schedule must be at least 0 and rise, but "
                       "boundaries[%d] is %lld",
                       i, (long long)boundary);
    }
    return NULL;
}

static double piece_rate(const bel_schedule *schedule, int64_t step)
{
    int piece = 0, last = piece_count(schedule) - 1;
    while (piece < last && step > schedule->boundaries[piece])
        piece++;
    return schedule->rates[piece];
}

double bel_optimizer_rate(const bel_optimizer *optimizer, int64_t step)
{
    const bel_schedule *schedule = &optimizer->schedule;
    double rate = optimizer->learning_rate;
    if (schedule->kind == BEL_SCHEDULE_EXPONENTIAL) {
        double power = (double)step / (double)schedule->decay_steps;
        if (schedule->staircase) power = floor(power);
        rate *= bel_real_pow(schedule->decay_rate, power);
    }
    if (schedule->kind == BEL_SCHEDULE_COSINE) {
        const double pi = 3.14159265358979324;
        double x = fmin(1, (double)step / (double)schedule->decay_steps);
        rate *= schedule->alpha + (1 - schedule->alpha) * (1 + bel_real_cos(pi * x)) / 2;
    }
    if (schedule->kind == BEL_SCHEDULE_PIECEWISE) rate = piece_rate(schedule, step);
    if (step < schedule->warmup_steps) {
        rate *= (double)(step + 1) / (double)schedule->warmup_steps;
    }
    return rate;
}
