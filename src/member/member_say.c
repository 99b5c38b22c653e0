// What a member says to its master: any message, under the generation of the state that it
// holds, and the numbers that it counts (monitoring/numbers.h). For the main thread, which alone
// changes the generation. What is sent over a connection that has ended is lost without an
// error: the member joins again and says it once more. It calls no other file of the room, so
// that all of them can call it.
#include "base/alloc.h"
#include "base/linux_process.h"
#include "member/member_inner.h"
#include "ps/server/numbers.h"
#include "worker/numbers.h"

void bel_member_send(member *m, const ProtobufCMessage *kind)
{
    bel_mailbox_send(m->mailbox, m->generation, kind);
}

// Shard 0 adds three numbers for each worker: what it knows of their reports.
double *bel_member_numbers(const member *m, size_t *out_count)
{
    bool knows_reports = m->shard.shard != NULL && m->shard.index == 0;
    size_t workers = knows_reports ? (size_t)m->assignment->worker_count : 0;
    *out_count = BEL_NUMBER_COUNT + workers * BEL_NUMBERS_BY_WORKER;
    double *numbers = bel_xcalloc(*out_count, sizeof *numbers);
    if (m->worker.worker != NULL) bel_numbers_of_worker(m->worker.worker, numbers);
    if (m->shard.shard != NULL) bel_numbers_of_shard(m->shard.shard, numbers);
    for (size_t w = 0; w < workers; w++)
        bel_numbers_of_reports(m->shard.shard, (int)w,
                               numbers + BEL_NUMBER_COUNT + w * BEL_NUMBERS_BY_WORKER);
    numbers[BEL_NUMBER_MEMORY] = (double)bel_linux_resident_bytes();
    return numbers;
}
