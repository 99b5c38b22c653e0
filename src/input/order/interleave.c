// The rule is that of tf.data. Slots are visited in turn. An open slot gives block_length records;
// if its dataset ends before that, the slot becomes empty and the turn passes to the next slot. An
// empty slot opens the next dataset and gives records at once. If a dataset ends exactly with its
// block, its end is found at the next visit, which then gives nothing; so the next dataset is
// opened a round later.
//
// All rounds between two ends of datasets are alike, so they form one stretch: its number of rounds
// is limited by the dataset with the fewest records left. The rest is walked visit by visit, with a
// stretch each. So the size of the table depends on the numbers of datasets and slots, not of
// records.
#include "input/order/interleave.h"

#include "base/alloc.h"
#include "input/files/number_list.h"

enum { EMPTY = -1 };

typedef struct walk {
    bel_interleave *order;
    const int64_t *lengths;
    int count;
    int next; // index of the next dataset to open
    int cycle_length;
    int64_t block_length;
    int *slots;     // the dataset in each, or EMPTY
    int64_t *taken; // records taken from each dataset
} walk;

static void begin_stretch(bel_interleave *order, int64_t turn)
{
    order->firsts = bel_xgrow(order->firsts, &order->first_capacity, order->stretch_count + 1,
                              sizeof *order->firsts);
    order->stretches = bel_xgrow(order->stretches, &order->stretch_capacity,
                                 order->stretch_count + 1, sizeof *order->stretches);
    order->firsts[order->stretch_count] = order->count;
    order->stretches[order->stretch_count++] =
        (bel_interleave_stretch){.turn = turn, .first_part = order->part_count};
}

// Adds `count` records of a dataset to the last stretch.
static void add_part(walk *w, int dataset, int64_t count)
{
    bel_interleave *order = w->order;
    order->parts =
        bel_xgrow(order->parts, &order->part_capacity, order->part_count + 1, sizeof *order->parts);
    order->parts[order->part_count++] =
        (bel_interleave_part){.dataset = dataset, .start = w->taken[dataset]};
    order->stretches[order->stretch_count - 1].part_count++;
    order->count += count;
    w->taken[dataset] += count;
}

// Number of rounds in which every open slot can give full blocks; 0 also if a slot is still to be
// opened.
static int64_t whole_rounds(const walk *w)
{
    int64_t rounds = -1;
    for (int s = 0; s < w->cycle_length; s++) {
        int dataset = w->slots[s];
        if (dataset == EMPTY && w->next < w->count) return 0;
        if (dataset == EMPTY) continue;
        int64_t blocks = (w->lengths[dataset] - w->taken[dataset]) / w->block_length;
        if (rounds < 0 || blocks < rounds) rounds = blocks;
    }
    return rounds < 0 ? 0 : rounds;
}

static void walk_visit(walk *w, int slot)
{
    if (w->slots[slot] == EMPTY && w->next < w->count) w->slots[slot] = w->next++;
    int dataset = w->slots[slot];
    if (dataset == EMPTY) return;
    int64_t left = w->lengths[dataset] - w->taken[dataset];
    int64_t given = left < w->block_length ? left : w->block_length;
    if (given > 0) {
        begin_stretch(w->order, given);
        add_part(w, dataset, given);
    }
    if (given < w->block_length) w->slots[slot] = EMPTY;
}

static bool is_over(const walk *w)
{
    for (int s = 0; s < w->cycle_length; s++)
        if (w->slots[s] != EMPTY) return false;
    return w->next == w->count;
}

void bel_interleave_init(bel_interleave *order, const int64_t *lengths, int count, int cycle_length,
                         int64_t block_length)
{
    *order = (bel_interleave){0};
    walk w = {.order = order,
              .lengths = lengths,
              .count = count,
              .cycle_length = cycle_length,
              .block_length = block_length,
              .slots = bel_xcalloc((size_t)cycle_length, sizeof *w.slots),
              .taken = bel_xcalloc((size_t)count, sizeof *w.taken)};
    for (int s = 0; s < cycle_length; s++)
        w.slots[s] = EMPTY;
    while (!is_over(&w)) {
        int64_t rounds = whole_rounds(&w);
        if (rounds > 0) begin_stretch(order, block_length);
        for (int s = 0; rounds > 0 && s < cycle_length; s++)
            if (w.slots[s] != EMPTY) add_part(&w, w.slots[s], rounds * block_length);
        for (int s = 0; s < cycle_length; s++)
            walk_visit(&w, s);
    }
    bel_free(w.slots);
    bel_free(w.taken);
}

void bel_interleave_deinit(bel_interleave *order)
{
    bel_free(order->firsts);
    bel_free(order->stretches);
    bel_free(order->parts);
    *order = (bel_interleave){0};
}

bel_interleave_part bel_interleave_at(const bel_interleave *order, int64_t number)
{
    size_t index = bel_last_at_most(order->firsts, order->stretch_count, number);
    const bel_interleave_stretch *stretch = &order->stretches[index];
    int64_t offset = number - order->firsts[index];
    int64_t round = stretch->turn * (int64_t)stretch->part_count; // records per round
    int64_t within = offset % round;
    bel_interleave_part part = order->parts[stretch->first_part + (size_t)(within / stretch->turn)];
    part.start += offset / round * stretch->turn + within % stretch->turn;
    return part;
}
