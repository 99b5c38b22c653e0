// Small job of the targets that use frames: its layout, and the form of a frame in an input.
#ifndef BELFRY_TESTS_FUZZ_JOB_H
#define BELFRY_TESTS_FUZZ_JOB_H

#include <string.h>

#include "fuzz/fuzz.h"
#include "ps/layout/layout.h"
#include "transport/lane.h"

enum { FUZZ_TABLE_IDS = 8, FUZZ_TABLE_WIDTH = 2 };

// Two dense variables and a table, with exchanges. The table is optional, as some optimizers' rules
// cannot skip rows.
static inline bel_layout *fuzz_job_layout(int shards, bool with_table)
{
    static char kernel[] = "kernel", mean[] = "mean", rows[] = "rows";
    const bel_layout_variable variables[] = {
        {.name = kernel, .shape = BEL_SHAPE(2, 3)},
        {.name = mean, .shape = BEL_SHAPE(2), .kind = BEL_VARIABLE_STATE_MEAN},
    };
    bel_layout *layout = bel_layout_create(variables, 2, shards);
    layout->exchanges = true;
    const bel_layout_table table = {.name = rows,
                                    .width = FUZZ_TABLE_WIDTH,
                                    .ids = FUZZ_TABLE_IDS,
                                    .initializer = {.kind = BEL_INIT_ZEROS}};
    if (with_table) bel_layout_add_table(layout, &table);
    return layout;
}

// Reads a frame: kind, a byte whose bits change generation, incarnation and sender, fields, two
// bytes of length. The payload follows and belongs to the input.
static inline bel_frame fuzz_job_frame(fuzz_input *input, int sender)
{
    bel_frame frame = {.kind = (uint32_t)fuzz_take(input, 1), .generation = 1, .sender = sender};
    unsigned strange = (unsigned)fuzz_take(input, 1);
    frame.generation += strange & 1;
    frame.incarnation += strange >> 1 & 1;
    frame.sender += (int)(strange >> 2 & 1);
    size_t count;
    const uint8_t *fields = fuzz_take_bytes(input, sizeof frame.fields, &count);
    if (count > 0) memcpy(frame.fields, fields, count);
    size_t wanted = (size_t)fuzz_take(input, 2);
    frame.payload = fuzz_take_bytes(input, wanted, &frame.payload_bytes);
    return frame;
}

#endif
