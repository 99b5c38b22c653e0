// Rows are in a fixed order: the master, workers by index, shards, evaluators. A change of the
// number of workers moves rows and invalidates pointers to them. A rate is the difference between
// two values of a counter. A smaller value means that another process has restarted the counter, so
// the rate is unknown once instead of negative. Only shard 0 knows what happened to a worker's
// reports, so those numbers are stored separately from the worker's.
//
// The slowest worker is compared with the median of the others. With an even number the lower
// middle one counts, so that of two workers the faster one is the reference.
#include "monitoring/board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

const bel_number_info bel_number_table[BEL_NUMBER_COUNT] = {
#define X(id, name, owner, counts, help) {name, BEL_OF_##owner, counts, help},
    BEL_NUMBERS(X)
#undef X
};

const char *bel_board_role_name(bel_board_role role)
{
    static const char *const names[] = {"master", "worker", "shard", "evaluator"};
    return names[role];
}

// --- Life ----------------------------------------------------------------------------------------

static bel_board_row new_row(bel_board_role role, int index)
{
    bel_board_row row = {.role = role, .index = index};
    for (int n = 0; n < BEL_NUMBER_COUNT; n++)
        row.rates[n] = NAN;
    return row;
}

bel_board *bel_board_create(int worker_count, int shard_count, int evaluator_count)
{
    const int counts[] = {1, worker_count, shard_count, evaluator_count};
    bel_board *board = bel_xcalloc(1, sizeof *board);
    size_t rows = 1 + (size_t)worker_count + (size_t)shard_count + (size_t)evaluator_count;
    board->rows = bel_xgrow(NULL, &board->row_capacity, rows, sizeof *board->rows);
    board->loss = board->examples_per_second = NAN;
    for (int r = 0; r < BEL_BOARD_ROLE_COUNT; r++) {
        for (int i = 0; i < counts[r]; i++)
            board->rows[board->row_count++] = new_row((bel_board_role)r, i);
    }
    return board;
}

static void free_row(bel_board_row *row)
{
    bel_free(row->doing);
    bel_free(row->devices);
}

void bel_board_destroy(bel_board *board)
{
    if (board == NULL) return;
    for (int i = 0; i < board->row_count; i++)
        free_row(&board->rows[i]);
    bel_free(board->rows);
    bel_free(board);
}

bel_board_row *bel_board_find(bel_board *board, bel_board_role role, int index)
{
    for (int i = 0; i < board->row_count; i++)
        if (board->rows[i].role == role && board->rows[i].index == index) return &board->rows[i];
    return NULL;
}

void bel_board_seat(bel_board *board, bel_board_role role, int index, bool here)
{
    int at = 0; // the row's position: rows are in the order of roles, then of indices
    while (at < board->row_count &&
           (board->rows[at].role < role ||
            (board->rows[at].role == role && board->rows[at].index < index)))
        at++;
    size_t behind = (size_t)(board->row_count - at);
    bool has = behind > 0 && board->rows[at].role == role && board->rows[at].index == index;
    if (has == here) return;
    if (has) {
        free_row(&board->rows[at]);
        board->row_count--;
        memmove(&board->rows[at], &board->rows[at + 1], (behind - 1) * sizeof *board->rows);
        return;
    }
    board->rows = bel_xgrow(board->rows, &board->row_capacity, (size_t)board->row_count + 1,
                            sizeof *board->rows);
    memmove(&board->rows[at + 1], &board->rows[at], behind * sizeof *board->rows);
    board->rows[at] = new_row(role, index);
    board->rows[at].is_process = true;
    board->row_count++;
}

// --- Taking --------------------------------------------------------------------------------------

// Numbers of a worker that shard 0 knows; bel_board_note_reports stores them.
static bool is_report_count(int number)
{
    return number == BEL_NUMBER_COUNTED || number == BEL_NUMBER_STALE ||
           number == BEL_NUMBER_DROPPED;
}

bool bel_board_has(const bel_board_row *row, bel_number number)
{
    switch (bel_number_table[number].owner) {
    case BEL_OF_WORKER: return row->role == BEL_BOARD_WORKER;
    case BEL_OF_SHARD: return row->role == BEL_BOARD_SHARD;
    case BEL_OF_PROCESS: return row->is_process;
    }
    return false;
}

void bel_board_note(bel_board_row *row, const double values[BEL_NUMBER_COUNT], int64_t noted_ns)
{
    if (noted_ns <= row->noted_ns) return;
    double seconds = (double)(noted_ns - row->noted_ns) * 1e-9;
    for (int n = 0; n < BEL_NUMBER_COUNT; n++) {
        if (!bel_board_has(row, (bel_number)n) || is_report_count(n)) continue;
        // A smaller value comes from a replaced process's counter.
        bool rated =
            row->noted_ns != 0 && bel_number_table[n].counts && values[n] >= row->values[n];
        row->rates[n] = rated ? (values[n] - row->values[n]) / seconds : (double)NAN;
        row->values[n] = values[n];
    }
    row->noted_ns = noted_ns;
}

void bel_board_note_reports(bel_board_row *row, const double values[BEL_NUMBERS_BY_WORKER])
{
    row->values[BEL_NUMBER_COUNTED] = values[0];
    row->values[BEL_NUMBER_STALE] = values[1];
    row->values[BEL_NUMBER_DROPPED] = values[2];
}

void bel_board_note_devices(bel_board_row *row, const bel_device_numbers *devices, int count)
{
    bel_free(row->devices);
    row->devices = count > 0 ? bel_xcalloc((size_t)count, sizeof *devices) : NULL;
    row->device_count = count;
    if (count > 0) memcpy(row->devices, devices, (size_t)count * sizeof *devices);
}

void bel_board_set_doing(bel_board_row *row, int64_t step, const char *doing)
{
    bel_free(row->doing);
    row->doing = doing != NULL ? bel_xstrdup(doing) : NULL;
    row->step = step;
}

// The rate of examples is measured over at least a second, because shorter times are too noisy.
void bel_board_set_step(bel_board *board, int64_t step, double loss, int64_t examples,
                        int64_t now_ns)
{
    enum { SECOND_NS = 1000000000 };
    board->time = bel_clock_wall();
    board->step = step;
    board->loss = loss;
    board->examples = examples;
    if (board->rated_ns != 0 && now_ns - board->rated_ns < SECOND_NS) return;
    if (board->rated_ns != 0 && examples >= board->rated_examples) {
        double seconds = (double)(now_ns - board->rated_ns) * 1e-9;
        board->examples_per_second = (double)(examples - board->rated_examples) / seconds;
    }
    board->rated_ns = now_ns;
    board->rated_examples = examples;
}

// --- The slowest worker --------------------------------------------------------------------------

typedef struct step_times { // one worker's, in milliseconds per step
    int worker;
    double input, compute, total;
} step_times;

// Computes times from rates (recent) or from all values; false: no step in that time.
static bool find_times(const bel_board_row *row, bool recent, step_times *out)
{
    const double *from = recent ? row->rates : row->values;
    double steps = from[BEL_NUMBER_STEPS];
    if (row->role != BEL_BOARD_WORKER || isnan(steps) || steps <= 0) return false;
    *out = (step_times){.worker = row->index,
                        .input = 1e3 * from[BEL_NUMBER_INPUT] / steps,
                        .compute = 1e3 * from[BEL_NUMBER_COMPUTE] / steps,
                        .total = 1e3 * from[BEL_NUMBER_TOTAL] / steps};
    return true;
}

// Time of a worker's own work; waiting for versions depends on the others.
static double own_time(const step_times *t)
{
    return t->input + t->compute;
}

static double input_time(const step_times *t)
{
    return t->input;
}

static double compute_time(const step_times *t)
{
    return t->compute;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Returns the median of all but one; with an even number the lower middle one.
static double median_of_others(const step_times *times, int count, int but,
                               double (*of)(const step_times *))
{
    double *list = bel_xcalloc((size_t)count, sizeof *list);
    int used = 0;
    for (int i = 0; i < count; i++)
        if (i != but) list[used++] = of(&times[i]);
    qsort(list, (size_t)used, sizeof *list, compare_doubles);
    double median = list[(used - 1) / 2];
    bel_free(list);
    return median;
}

// Names the part, input or compute, that exceeds the others' median more.
bool bel_board_write_slowest(const bel_board *board, bool recent, bel_str *out)
{
    static const double most = 1.5, least_ms = 1;
    step_times *times = bel_xcalloc((size_t)board->row_count, sizeof *times);
    int count = 0, slowest = 0;
    for (int i = 0; i < board->row_count; i++)
        if (find_times(&board->rows[i], recent, &times[count])) count++;
    for (int i = 1; i < count; i++)
        if (own_time(&times[i]) > own_time(&times[slowest])) slowest = i;
    bool found = false;
    if (count > 1) {
        const step_times *it = &times[slowest];
        double others = median_of_others(times, count, slowest, own_time);
        double input = median_of_others(times, count, slowest, input_time);
        double compute = median_of_others(times, count, slowest, compute_time);
        found = own_time(it) > most * others && own_time(it) > others + least_ms;
        bool by_input = it->input - input > it->compute - compute;
        if (found) {
            bel_str_printf(out, "worker %d is the slowest: %s %.1f ms of %.1f (others %.1f)",
                           it->worker, by_input ? "input" : "compute",
                           by_input ? it->input : it->compute, it->total,
                           by_input ? input : compute);
        }
    }
    bel_free(times);
    return found;
}

// --- Parts of a step -----------------------------------------------------------------------------

static double least(double a, double b)
{
    return a < b ? a : b;
}

// Computes means over all versions but the first, because no step made it. False: no versions.
static bool split_shard(const bel_board_row *row, double *apply_ms, double *gather_ms)
{
    double made = row->values[BEL_NUMBER_VERSIONS] - 1;
    if (row->role != BEL_BOARD_SHARD || made < 1) return false;
    *apply_ms = 1e3 * row->values[BEL_NUMBER_APPLY] / made;
    *gather_ms = 1e3 * row->values[BEL_NUMBER_GATHER] / made;
    return true;
}

// Splits a worker's wait after its last report by the shards' numbers. The slowest shard delays the
// version, and shard 0 has measured the time between the workers' reports. Shards and workers
// report at different times, so no part may exceed the remaining time.
static void split_exchange(const bel_board *board, double exchange, bel_board_split *out)
{
    double apply = 0, gather = 0;
    for (int i = 0; i < board->row_count; i++) {
        double own_apply, own_gather;
        if (!split_shard(&board->rows[i], &own_apply, &own_gather)) continue;
        if (own_apply > apply) apply = own_apply;
        if (board->rows[i].index == 0) gather = own_gather;
        out->shards_known = true;
    }
    out->apply = least(apply, exchange);
    out->wait = out->shards_known ? least(gather, exchange - out->apply) : exchange;
    out->pull = exchange - out->apply - out->wait;
}

bool bel_board_split_step(const bel_board *board, bel_board_split *out_split)
{
    bel_board_split split = {0};
    double exchange = 0, total = 0;
    int count = 0;
    for (int i = 0; i < board->row_count; i++) {
        const double *values = board->rows[i].values;
        double scale = 1e3 / values[BEL_NUMBER_STEPS];
        if (board->rows[i].role != BEL_BOARD_WORKER || !(values[BEL_NUMBER_STEPS] > 0)) continue;
        split.input += values[BEL_NUMBER_INPUT] * scale;
        split.compute += values[BEL_NUMBER_COMPUTE] * scale;
        split.push += values[BEL_NUMBER_PUSH] * scale;
        exchange += values[BEL_NUMBER_EXCHANGE] * scale;
        total += values[BEL_NUMBER_TOTAL] * scale;
        count++;
    }
    if (count == 0) return false;
    split.input /= count;
    split.compute /= count;
    split.push /= count;
    split_exchange(board, exchange / count, &split);
    double other = (total - exchange) / count - split.input - split.compute - split.push;
    split.other = other > 0 ? other : 0;
    *out_split = split;
    return true;
}
