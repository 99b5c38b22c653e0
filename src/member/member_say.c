// Messages of a member to its master, with the generation of its state: any message, its activity,
// and its counters (monitoring/numbers.h). For the main thread, which is the only one that changes
// the generation. Messages over a finished connection are lost without an error: the member joins
// again and repeats them. This file calls no other file of the folder, so that all of them can call
// it.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_process.h"
#include "base/str.h"
#include "member/member_inner.h"
#include "ps/server/numbers.h"
#include "worker/numbers.h"

void bel_member_send(member *m, const ProtobufCMessage *kind)
{
    bel_mailbox_send(m->master.mailbox, m->generation, kind);
}

// Shard 0 adds three numbers for each worker: the counts of its reports.
double *bel_member_numbers(const member *m, size_t *out_count)
{
    bool knows_reports = m->shard.shard != NULL && m->shard.index == 0;
    size_t workers = knows_reports ? (size_t)m->assignment->worker_count : 0;
    *out_count = BEL_NUMBER_COUNT + workers * BEL_NUMBERS_BY_WORKER;
    double *numbers = bel_xcalloc(*out_count, sizeof *numbers);
    if (m->worker.worker != NULL) bel_numbers_of_worker(m->worker.worker, numbers);
    if (m->shard.shard != NULL) bel_numbers_of_shard(m->shard.shard, numbers);
    if (m->shard.mirror.there) bel_numbers_add_mirror(m->shard.mirror.shard, numbers);
    for (size_t w = 0; w < workers; w++) {
        if (bel_assignment_replicas(m->assignment, (int)w) == 0) continue;
        int reporter =
            bel_reporters_find(&m->shard.reporters, (int)w); // a worker's, or its relay's
        if (reporter < 0) continue;
        bel_numbers_of_reports(m->shard.shard, reporter,
                               numbers + BEL_NUMBER_COUNT + w * BEL_NUMBERS_BY_WORKER);
    }
    numbers[BEL_NUMBER_MEMORY] = (double)bel_linux_resident_bytes();
    return numbers;
}

static size_t list_devices(const member *m, Bel__Device *devices, Bel__Device **list)
{
    bel_device_numbers numbers[BEL_MOST_DEVICES];
    int count = m->worker.worker != NULL ? bel_devices_of_worker(m->worker.worker, numbers) : 0;
    for (int d = 0; d < count; d++) {
        list[d] = &devices[d];
        bel__device__init(&devices[d]);
        devices[d].number = numbers[d].number;
        devices[d].towers = numbers[d].towers;
        devices[d].taken = numbers[d].taken;
        devices[d].free = numbers[d].free;
        devices[d].memory = numbers[d].all;
    }
    return (size_t)count;
}

void bel_member_send_status(member *m, bool at_once)
{
    enum { SECOND_NS = 1000000000 };
    int64_t now = bel_clock_ns();
    if (!at_once && now - m->told.status_ns < SECOND_NS) return;
    m->told.status_ns = now;
    bel_str words = {0};
    int64_t step = 0;
    if (m->task->role == BEL_ROLE_EVALUATOR) {
        const member_evaluator *evaluator = &m->evaluator;
        step = evaluator->asked >= 0 ? evaluator->asked : evaluator->newest.step;
        bel_str_puts(&words, evaluator->asked >= 0 ? "evaluates a checkpoint"
                                                   : "waits for a checkpoint to evaluate");
    }
    if (m->worker.worker != NULL) step = bel_worker_doing(m->worker.worker, &words);
    for (int i = 0; i < m->relays.found; i++) {
        bel_str_puts(&words, ", its relay ");
        bel_relay_doing(m->relays.list[i], &words);
    }
    if (m->shard.shard != NULL) {
        if (words.length > 0) bel_str_puts(&words, ", its shard ");
        step = bel_shard_doing(m->shard.shard, &words);
        const member_shard_mirror *mirror = &m->shard.mirror;
        if (mirror->there && !atomic_load(&mirror->has_mirror))
            bel_str_printf(&words, ", and for the state of its mirror of shard %d", mirror->of);
    }
    if (words.length == 0) bel_str_puts(&words, "is ready");
    size_t count;
    double *numbers = bel_member_numbers(m, &count);
    Bel__Status status;
    bel__status__init(&status);
    status.step = step;
    status.doing = words.text;
    status.numbers = numbers;
    status.n_numbers = count;
    Bel__Device devices[BEL_MOST_DEVICES], *list[BEL_MOST_DEVICES];
    status.n_devices = list_devices(m, devices, list);
    status.devices = list;
    bel_member_send(m, &status.base);
    bel_free(numbers);
    bel_str_deinit(&words);
}
