// Numbers from members, on the master's board. They are those of a member's last status or end, so
// up to a second old, and stay while it is absent. The list is that of numbers.h, to which the
// process with shard 0 adds three numbers for each worker; one that is too short is not read past
// its end. If worker 0 shares the master's process, its memory is in the master's row.
#include "base/clock.h"
#include "master/backend/remote_inner.h"

static void show_reports(const bel_member_view *m, int seats, bel_board *board)
{
    for (int w = 0; w < seats; w++) {
        size_t at = BEL_NUMBER_COUNT + (size_t)w * BEL_NUMBERS_BY_WORKER;
        if (at + BEL_NUMBERS_BY_WORKER > m->number_count) return; // only shard 0 knows
        bel_board_row *row = bel_board_find(board, BEL_BOARD_WORKER, w);
        if (row != NULL) bel_board_note_reports(row, m->numbers + at);
    }
}

// Shows a member. A worker that holds a shard has a row of each kind: its memory is in the
// worker's.
static void show_member(remote *r, const bel_member_view *m, bel_board *board)
{
    static const bel_board_role roles[BEL_ROLE_COUNT] = {
        [BEL_ROLE_MASTER] = BEL_BOARD_MASTER,
        [BEL_ROLE_WORKER] = BEL_BOARD_WORKER,
        [BEL_ROLE_PS] = BEL_BOARD_SHARD,
        [BEL_ROLE_EVALUATOR] = BEL_BOARD_EVALUATOR,
    };
    const bel_task *task = r->config.task;
    if (m->role == BEL_ROLE_WORKER) bel_board_seat(board, BEL_BOARD_WORKER, m->index, !m->vacant);
    bel_board_row *row = bel_board_find(board, roles[m->role], m->index);
    if (row == NULL) return;
    bool with_master = m->role == BEL_ROLE_WORKER && m->index == 0 && task->master_trains;
    row->is_process = !with_master; // otherwise its memory is in the master's row
    bel_board_set_doing(row, m->step, m->doing);
    bel_board_note_devices(row, m->devices, m->device_count);
    if (m->number_count < BEL_NUMBER_COUNT) return;
    bel_board_note(row, m->numbers, m->numbers_ns);
    bool holds_shard =
        m->role == BEL_ROLE_WORKER && task->ps_count == 0 && m->index < r->backend.shard_count;
    bel_board_row *shard = holds_shard ? bel_board_find(board, BEL_BOARD_SHARD, m->index) : NULL;
    if (shard != NULL) bel_board_note(shard, m->numbers, m->numbers_ns);
    show_reports(m, r->seats, board);
}

void bel_remote_show(bel_backend *backend, bel_board *board)
{
    remote *r = (remote *)backend;
    const bel_members *members = r->config.members;
    for (int i = 0; i < bel_members_count(members); i++)
        show_member(r, bel_members_get(members, i), board);
    board->losses = bel_members_losses(members);
    board->restarts = bel_members_restarts(members);
    bel_board_set_step(board, r->state.step, r->state.loss, r->state.examples, bel_clock_ns());
}
