// Counts of a server's requests for Prometheus, by model and stage. Those by version are in the
// versions. Any thread adds, without a lock.
#ifndef BELFRY_SERVE_TALLY_H
#define BELFRY_SERVE_TALLY_H

#include "serve/gate.h"
#include "serve/models.h"

typedef struct bel_tally bel_tally;

bel_tally *bel_tally_create(int model_count);
void bel_tally_destroy(bel_tally *tally);

// Adds a request. `model`: its index; -1: none. Only inferences that succeed (code 200) count in
// the histogram.
void bel_tally_add(bel_tally *tally, int model, int code, bool is_inference, int64_t spent_ns);

// Adds the stages of an inference of a model that succeeded.
enum { BEL_STAGE_READ, BEL_STAGE_QUEUE, BEL_STAGE_RUN, BEL_STAGE_WRITE, BEL_STAGES };
void bel_tally_add_stages(bel_tally *tally, int model, const int64_t spent_ns[BEL_STAGES]);

// Writes all numbers in the text format 0.0.4.
void bel_tally_write(const bel_tally *tally, const bel_models *models, bel_gate *gate,
                     bel_str *out);

#endif
