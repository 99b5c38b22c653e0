// Learning rates by step, and the checks of their settings. A schedule is a pure function of the
// step number, computed in double on every shard, so that a resumed run and any number of shards
// get the same rates.
#include <math.h>

#include "base/real.h"
#include "optim/formula.h"
#include "optim/rule.h"
#include "optim/settings.h"

static int piece_count(const bel_schedule *schedule)
{
    int count = 0;
    while (count < BEL_SCHEDULE_MAX_PIECES && schedule->rates[count] != 0)
        count++;
    return count;
}

// Rates end at the first 0. A number after the end of either list is an error.
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

// The half wave from 1 to 0 at x in [0, 1].
static double half_wave(double x)
{
    const double pi = 3.14159265358979324;
    return (1 + bel_real_cos(pi * x)) / 2;
}

// The wave after `x` decay_steps. Periods are counted one by one unless all have one length:
// growing ones (bel_optimizer_check) are soon longer than any training.
static double restarting_wave(const bel_schedule *schedule, double x)
{
    double length = 1, height = 1;
    if (schedule->t_mul == 1) {
        height = bel_real_pow(schedule->m_mul, floor(x));
        x -= floor(x);
    }
    for (; x >= length; height *= schedule->m_mul) {
        x -= length;
        length *= schedule->t_mul;
    }
    return height * half_wave(x / length);
}

static double polynomial(const bel_schedule *schedule, double x)
{
    double times = schedule->cycle ? fmax(1, ceil(x)) : 1;
    return bel_real_pow(1 - fmin(1, x / times), schedule->power);
}

// Factor of warm-up and scale.
static double schedule_raise(const bel_schedule *schedule, int64_t step)
{
    bool warms_up = step < schedule->warmup_steps;
    double scale = schedule->scale, warmup = (double)schedule->warmup_steps;
    if (scale > 0) return warms_up ? 1 + (scale - 1) * (double)step / warmup : scale;
    return warms_up ? (double)(step + 1) / warmup : 1;
}

double bel_optimizer_rate(const bel_optimizer *optimizer, int64_t step)
{
    const bel_schedule *schedule = &optimizer->schedule;
    double rate = optimizer->learning_rate, alpha = schedule->alpha, factor;
    double x = schedule->decay_steps > 0 ? (double)step / (double)schedule->decay_steps : 0;
    double decays = schedule->staircase ? floor(x) : x;
    switch (schedule->kind) {
    case BEL_SCHEDULE_CONSTANT: break;
    case BEL_SCHEDULE_EXPONENTIAL: rate *= bel_real_pow(schedule->decay_rate, decays); break;
    case BEL_SCHEDULE_NATURAL_EXP: rate *= bel_real_exp(-schedule->decay_rate * decays); break;
    case BEL_SCHEDULE_INVERSE_TIME: rate /= 1 + schedule->decay_rate * decays; break;
    case BEL_SCHEDULE_PIECEWISE: rate = piece_rate(schedule, step); break;
    case BEL_SCHEDULE_COSINE: rate *= alpha + (1 - alpha) * half_wave(fmin(1, x)); break;
    case BEL_SCHEDULE_POLYNOMIAL: rate *= alpha + (1 - alpha) * polynomial(schedule, x); break;
    case BEL_SCHEDULE_FORMULA:
        factor = bel_formula_value(schedule->formula, step);
        rate *= factor < 0 ? 0 : factor; // NaN stays, and fails the training
        break;
    case BEL_SCHEDULE_COSINE_RESTARTS:
        rate *= alpha + (1 - alpha) * restarting_wave(schedule, x);
        break;
    }
    return rate * schedule_raise(schedule, step);
}
