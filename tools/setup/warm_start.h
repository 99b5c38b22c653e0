// Comparison of a training with the checkpoint whose values it begins with (--warm_start). Shapes
// do not show that a head has other classes, an input other columns, or a layer other heads.
#ifndef BELFRY_TOOLS_SETUP_WARM_START_H
#define BELFRY_TOOLS_SETUP_WARM_START_H

#include "setup/huggingface.h"
#include "setup/params.h"
#include "setup/setup.h"

// Compares the descriptions of columns, if both trainings have one. It compares the classes if the
// head is taken, and the columns if the layers that read them are. It reads nothing if the training
// resumes, or if this process is not the master. FAILED_PRECONDITION: they differ (the class or the
// column is named); errors of bel_ckpt_open_any.
bel_status *bel_warm_start_check_columns(const bel_options *options,
                                         const bel_setup *setup) BEL_MUST_USE;

// Settings of the model of language that a training begins with, as flags.
typedef struct bel_warm_settings {
    bel_huggingface_settings list; // empty: it has none, or the training begins with no folder
    bool has_tokenizer;            // it was trained with one
} bel_warm_settings;

// Reads them from the folder of --warm_start, one of Belfry or of Hugging Face. Settings that
// training of another model does not share with `model` are left out. Errors of bel_ckpt_open_any
// and of bel_huggingface_read_settings.
bel_status *bel_warm_start_read_settings(const bel_options *options, const char *model,
                                         bel_warm_settings *out) BEL_MUST_USE;

// Compares those of a checkpoint of Belfry with a training's. Layers beyond the training's are left
// out, which a warning says. With --warm_start_variables a warning also names the others.
// FAILED_PRECONDITION: they differ (the setting is named).
bel_status *bel_warm_start_check_settings(const bel_options *options, const bel_params *params,
                                          const bel_warm_settings *there) BEL_MUST_USE;

// Reads the context of the model that the training begins with; leaves *context if it has none.
bel_status *bel_warm_start_context(const bel_options *options, int64_t *context) BEL_MUST_USE;

#endif
