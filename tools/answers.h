// Predictions of a table in the user's words: keys, classes by name, probabilities.
#ifndef BELFRY_TOOLS_ANSWERS_H
#define BELFRY_TOOLS_ANSWERS_H

#include "base/str.h"
#include "belfry/columns.h"
#include "belfry/estimator.h"

typedef struct bel_answers {
    const bel_columns *columns;
    double threshold;         // of two classes: the second one's probability is above it; 0.5: it
                              // is the larger one
    bool json;                // a line is an object, else one of CSV
    const char *const *names; // of the columns that are passed through
    int name_count;
    const int64_t *rows; // the number of each example's row, which leads its line; NULL: none does
} bel_answers;

// Appends a field of CSV, in quotes where RFC 4180 wants them.
void bel_answer_field(bel_str *out, const char *text);

// CSV: the names of the columns.
//   classes: id,prediction,p_setosa,p_versicolor …      a number: id,prediction
//   several labels: id,prediction,p_spam,p_urgent … with "spam|urgent" for a prediction
void bel_answers_header(const bel_answers *answers, bel_str *out);

// An example's line. `cells`: the values of `names`; `rows`: its predictions, each without the
// batch dimension.
//   {"example":0,"id":"17","class":"setosa","probabilities":{"setosa":0.98,…}}
//   {"example":0,"id":"17","labels":["spam"],"probabilities":{"spam":0.98,…}}
//   {"example":0,"id":"17","prediction":23.5}
// INVALID_ARGUMENT: the model predicts other than the label asks for.
bel_status *bel_answers_line(const bel_answers *answers, int64_t example, const bel_str *cells,
                             const bel_tensor *prediction, bel_str *out) BEL_MUST_USE;

// Element i of a prediction; 0 for texts.
double bel_answer_element(const bel_tensor *row, int64_t i);

// The class with the largest value; of two the second one where it is above the threshold, unless
// that is 0.5.
int64_t bel_answer_class(const bel_tensor *row, double threshold);

#endif
