// Predictions of a table in the user's words: keys, classes by name, probabilities.
#ifndef BELFRY_TOOLS_PREDICT_ANSWERS_H
#define BELFRY_TOOLS_PREDICT_ANSWERS_H

#include "belfry/columns.h"
#include "belfry/estimator.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_answers {
    const bel_columns *columns;
    double threshold;         // two classes: the second is predicted if its probability is
                              // above it; 0.5: the larger probability wins
    bool json;                // each line is a JSON object, else CSV
    const char *const *names; // columns to pass through
    int name_count;
    const int64_t *rows; // row number of each example, printed first in its line; NULL: not printed
} bel_answers;

// Appends a field of CSV, quoted if RFC 4180 requires it.
void bel_answer_field(bel_str *out, const char *text);

// Appends the line of column names of CSV.
//   classes: id,prediction,p_setosa,p_versicolor …      a number: id,prediction
//   several labels: id,prediction,p_spam,p_urgent … with "spam|urgent" for a prediction
void bel_answers_header(const bel_answers *answers, bel_str *out);

// Appends an example's line. `cells`: the values of `names`; `rows`: its predictions, each without
// the batch dimension.
//   {"example":0,"id":"17","class":"setosa","probabilities":{"setosa":0.98,…}}
//   {"example":0,"id":"17","labels":["spam"],"probabilities":{"spam":0.98,…}}
//   {"example":0,"id":"17","prediction":23.5}
// INVALID_ARGUMENT: the model's predictions do not fit the label.
bel_status *bel_answers_line(const bel_answers *answers, int64_t example, const bel_str *cells,
                             const bel_tensor *prediction, bel_str *out) BEL_MUST_USE;

#endif
