// The model has no input for a text, so the version gets one after the model's. Its cells become
// elements of the two that the model has (infer.c).
#include "serve/texts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "export/export.h"
#include "serve/cells.h"
#include "tokens/tokenizer.h"

static bel_status *check_ports(const bel_served *v, const bel_column *column, const char *folder)
{
    const bel_shape all = bel_cells_shape(column, BEL_DIM_BATCH), one = BEL_SHAPE(BEL_DIM_BATCH);
    const bel_port *tokens = &v->inputs[v->text.tokens].port;
    const bel_port *lengths = &v->inputs[v->text.lengths].port;
    if (tokens->dtype == BEL_DTYPE_I64 && bel_shape_equal(&tokens->shape, &all) &&
        lengths->dtype == BEL_DTYPE_I64 && bel_shape_equal(&lengths->shape, &one))
        return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: the inputs \"%s\" and \"%s\" do not fit the column \"%s\"",
                   folder, tokens->name, lengths->name, column->name);
}

bel_status *bel_texts_open(bel_served *v, const char *folder, const char *digest)
{
    if (v->columns == NULL || v->columns->tokens < 0 || digest == NULL) return NULL;
    const bel_column *column = &v->columns->items[v->columns->tokens];
    const bel_predictor *first = v->predictors[0];
    v->text.tokens = bel_predictor_find_input(first, BEL_TOKENS_FIELD);
    v->text.lengths = bel_predictor_find_input(first, BEL_LENGTH_FIELD);
    if (v->text.tokens < 0 || v->text.lengths < 0) return NULL;
    if (bel_predictor_find_input(first, column->name) >= 0) return NULL;
    BEL_TRY(check_ports(v, column, folder));
    char *path = bel_path_join(folder, BEL_EXPORT_TOKENIZER);
    bool found = bel_file_exists(path);
    bel_status *status = found ? bel_tokenizer_open_same(path, digest, &v->text.tokenizer) : NULL;
    bel_free(path);
    if (status != NULL || !found) return status;
    v->text.input = v->input_count;
    v->inputs[v->text.input] = (bel_served_input){
        .port = {column->name, BEL_DTYPE_STRING, BEL_SHAPE(BEL_DIM_BATCH)}, .column = column};
    return bel_columns_set_tokenizer(v->columns, v->text.tokenizer);
}
