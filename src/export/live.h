// A checkpoint of a training as a model that answers requests. Its inputs are those of an export
// (export_graph.h) with ids instead of places. A delta on a base that is open costs its rows and
// the dense part.
#ifndef BELFRY_EXPORT_LIVE_H
#define BELFRY_EXPORT_LIVE_H

#include "belfry/estimator.h"
#include "belfry/predictor.h"

// Immutable after opening. One thread opens, retains and releases.
typedef struct bel_live bel_live;

typedef struct bel_live_facts {
    int64_t step;
    int64_t base_step;     // the base's; `step` for a full checkpoint
    int64_t rows, removed; // a delta's rows, and its keys that lost theirs
    bool shares;           // the base's rows were in memory
    int64_t table_bytes;   // memory of all rows, with the base
} bel_live_facts;

// Opens the checkpoint in a folder, with the parameters of the estimator's model. Its base's rows
// are those of one of `others` that has the same base. The estimator must outlive it. NOT_FOUND,
// DATA_LOSS: as for bel_ckpt_open_lazily, or the delta does not fit its base. Otherwise the errors
// of the model function. Release with bel_live_release.
bel_status *bel_live_open(const bel_estimator *estimator, const char *checkpoint,
                          const bel_live *const *others, int other_count,
                          bel_live **out_live) BEL_MUST_USE;
void bel_live_retain(bel_live *live);
void bel_live_release(bel_live *live); // accepts NULL

// Makes a predictor of one thread. `joined` is that of bel_predictor_options. `live` must outlive
// it.
bel_status *bel_live_predictor(bel_live *live, int64_t joined,
                               bel_predictor **out_predictor) BEL_MUST_USE;

bel_live_facts bel_live_look(const bel_live *live);
const char *bel_live_table(const bel_live *live); // description of the columns; NULL: no table
double bel_live_threshold(const bel_live *live);  // for two classes
// Digest of the tokenizer in the training's folder, which *out_folder names; NULL: it has none.
const char *bel_live_tokenizer(const bel_live *live, const char **out_folder);

#endif
