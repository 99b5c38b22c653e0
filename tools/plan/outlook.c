// Time and money of an epoch, and time to recover: plain arithmetic on the time of a step.
#include "plan/plan.h"

static const double ns_of_second = 1e9, seconds_of_hour = 3600;

double bel_plan_rate(const bel_plan_row *row)
{
    return row->cost.step_ns > 0 ? (double)row->examples * ns_of_second / row->cost.step_ns : 0;
}

double bel_plan_speed_up(const bel_plan_report *report, const bel_plan_row *row)
{
    if (row->cost.step_ns <= 0) return 0;
    return row->workers * report->one_process_ns / row->cost.step_ns; // each has the batch of one
}

// Time of the steps since the newest checkpoint, on average; below 0: no checkpoint is made.
static double lost_secs(const bel_plan_facts *facts, double step_secs)
{
    if (facts->save_steps > 0) return facts->save_steps / 2 * step_secs;
    return facts->save_secs > 0 ? facts->save_secs / 2 : -1;
}

bel_plan_outlook bel_plan_outlook_of(const bel_plan_facts *facts, double step_ns, double examples,
                                     int hosts)
{
    double step_secs = step_ns / ns_of_second;
    double back_secs = facts->start_ns / ns_of_second + step_secs;
    double state_secs = facts->state_bytes * facts->state_ns / ns_of_second;
    double lost = lost_secs(facts, step_secs), host_lost = facts->copied ? 0 : lost;
    bel_plan_outlook outlook = {.process_back_secs = -1, .host_back_secs = -1};
    if (facts->kept) outlook.process_back_secs = back_secs;
    if (!facts->kept && lost >= 0) outlook.process_back_secs = back_secs + state_secs + lost;
    if (examples > 0) outlook.epoch_secs = facts->epoch_records / examples * step_secs;
    outlook.epoch_money = outlook.epoch_secs / seconds_of_hour * hosts * facts->price;
    if (host_lost >= 0)
        outlook.host_back_secs = facts->silence_secs + back_secs + state_secs + host_lost;
    return outlook;
}
