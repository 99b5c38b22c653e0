// --held_out: reads again the rows that a training held out.
#ifndef BELFRY_TOOLS_SETUP_HELD_OUT_H
#define BELFRY_TOOLS_SETUP_HELD_OUT_H

#include "checkpoint/checkpoint.h"
#include "setup/setup.h"

// Reads the flags of the training in a folder, which held rows out; free with bel_options_destroy.
// NOT_FOUND: the folder does not have them (job.yaml). FAILED_PRECONDITION: no rows were held out.
bel_status *bel_held_out_options(const char *model_dir, bel_options **out_training) BEL_MUST_USE;

// Compares the training's input, as its flags and files make it now, with that of the checkpoint:
// other files would hold out rows that were trained on. `input`: the checkpoint's settings.
// FAILED_PRECONDITION: it differs. Errors of opening it.
typedef struct bel_held_out_input {
    char *fingerprint, *columns; // NULL: none
    int64_t epochs, batch_size;  // 0: unknown
} bel_held_out_input;

void bel_held_out_input_read(const bel_ckpt_reader *reader, bel_held_out_input *out_input);
void bel_held_out_input_deinit(bel_held_out_input *input);
bel_status *bel_held_out_check(const bel_setup *setup,
                               const bel_held_out_input *input) BEL_MUST_USE;

// Returns the numbers of the held out rows among all rows of the files, from 0 on, ascending; free
// with bel_free. Errors: those of the files.
bel_status *bel_held_out_rows(const bel_setup *setup, int64_t **out_rows) BEL_MUST_USE;

#endif
