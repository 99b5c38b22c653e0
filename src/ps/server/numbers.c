// Fills the shard's part of monitoring/numbers.h from a copy of its counters, taken under the
// shard's mutex. Late and repeated frames, and frames from an old generation or process, are one
// number here: they show disturbance but never change a result.
#include "ps/server/numbers.h"

static const double seconds_of_ns = 1e-9;

void bel_numbers_of_shard(bel_shard *shard, double values[BEL_NUMBER_COUNT])
{
    bel_shard_counters counters = bel_shard_count(shard);
    values[BEL_NUMBER_VERSIONS] = (double)counters.versions;
    values[BEL_NUMBER_PASSES] = (double)counters.passes;
    values[BEL_NUMBER_PASSING] = (double)counters.pass_ns * seconds_of_ns;
    values[BEL_NUMBER_GATHER] = (double)counters.gather_ns * seconds_of_ns;
    values[BEL_NUMBER_APPLY] = (double)counters.apply_ns * seconds_of_ns;
    values[BEL_NUMBER_RECEIVED] = (double)counters.received_bytes;
    values[BEL_NUMBER_SENT] = (double)counters.sent_bytes;
    values[BEL_NUMBER_QUEUE] = (double)counters.queue;
    values[BEL_NUMBER_UNUSED] = (double)(counters.late + counters.repeated + counters.foreign);
    values[BEL_NUMBER_REFUSED] = (double)counters.refused_rows;
    values[BEL_NUMBER_ROWS] = (double)counters.rows;
    values[BEL_NUMBER_WAITING] = (double)counters.waiting_keys;
    values[BEL_NUMBER_ADMITTED] = (double)counters.admitted_rows;
    values[BEL_NUMBER_EXPIRED] = (double)counters.expired_rows;
}

void bel_numbers_add_mirror(bel_shard *mirror, double values[BEL_NUMBER_COUNT])
{
    bel_shard_counters counters = bel_shard_count(mirror);
    values[BEL_NUMBER_PASSES] += (double)counters.passes;
    values[BEL_NUMBER_PASSING] += (double)counters.pass_ns * seconds_of_ns;
    values[BEL_NUMBER_RECEIVED] += (double)counters.received_bytes;
    values[BEL_NUMBER_SENT] += (double)counters.sent_bytes;
    values[BEL_NUMBER_UNUSED] += (double)(counters.late + counters.repeated + counters.foreign);
}

void bel_numbers_of_reports(bel_shard *shard, int worker, double values[BEL_NUMBERS_BY_WORKER])
{
    bel_shard_reports reports = bel_shard_count_reports(shard, worker);
    values[0] = (double)reports.counted;
    values[1] = (double)reports.stale;
    values[2] = (double)reports.dropped;
}
