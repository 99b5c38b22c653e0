// ONNX file of model "onnx". It is identified by its contents, wherever it is, so a different file
// is detected. A copy in the model's folder has priority, because the original may be removed or
// changed. Only a file that contains all its values can be identified and copied in this way.
#include "setup/setup_onnx.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mapping.h"
#include "base/number.h"
#include "base/str.h"
#include "onnx/onnx.h"

bool bel_is_onnx_file(const char *model)
{
    size_t length = strlen(model), end = strlen(".onnx");
    return length > end && strcmp(model + length - end, ".onnx") == 0;
}

static bel_status *digest_of(const char *path, char out_digest[33])
{
    bel_mapping file;
    BEL_TRY(bel_mapping_open(path, &file));
    bel_hash128_text(bel_hash128_of(file.data, file.size, 0), out_digest);
    bel_mapping_close(&file);
    return NULL;
}

// Returns the number of classes of the first output that can be a classification's; a single logit
// means two. 0: there is no such output.
static int64_t classes_of(const bel_onnx_model *model)
{
    for (int o = 0; o < bel_onnx_output_count(model); o++) {
        const bel_onnx_port *port = bel_onnx_output(model, o);
        bool fits = port->ranked && port->dtype == BEL_DTYPE_F32 && port->shape.rank == 2;
        if (fits && port->shape.dims[1] > 0)
            return port->shape.dims[1] > 1 ? port->shape.dims[1] : 2;
    }
    return 0;
}

// Returns the type of the one input that receives the numbers of a CSV file: "x", or the only one
// that matches no other field of such a file. F32: there is no such input, or a cast from F32 feeds
// it.
static bel_dtype numbers_of(const bel_onnx_model *model)
{
    static const char *const others[] = {BEL_ID_FIELD, BEL_ID_LIST_FIELD, BEL_ID_WEIGHT_FIELD,
                                         BEL_LENGTH_FIELD};
    const bel_onnx_port *found = NULL;
    int count = 0;
    for (int i = 0; i < bel_onnx_input_count(model); i++) {
        const bel_onnx_port *port = bel_onnx_input(model, i);
        bool other = false;
        for (size_t o = 0; o < sizeof others / sizeof others[0]; o++)
            other = other || strcmp(port->name, others[o]) == 0;
        if (other) continue;
        count++;
        if (found == NULL || strcmp(port->name, "x") == 0) found = port;
    }
    if (found == NULL || (count > 1 && strcmp(found->name, "x") != 0)) return BEL_DTYPE_F32;
    bool exact = found->dtype == BEL_DTYPE_I64 || found->dtype == BEL_DTYPE_I32 ||
                 found->dtype == BEL_DTYPE_F64;
    return exact ? found->dtype : BEL_DTYPE_F32;
}

// Reads the model. The digest would not cover elements in other files, nor would they be copied.
// The number of classes is the model's unless a flag or a description sets it later.
static bel_status *look_at_onnx(const char *path, const bel_options *options, bel_params *params,
                                bel_setup *setup)
{
    bel_onnx_model *model;
    BEL_TRY(bel_onnx_read_file(path, &model));
    size_t sides = bel_onnx_side_count(model);
    int64_t classes = classes_of(model);
    setup->vector_dtype = numbers_of(model);
    bel_onnx_destroy(model);
    if (sides > 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "%s has values in other files (external data), and a model that is trained "
                       "must have them inside",
                       path);
    }
    bool whole = setup->vector_dtype == BEL_DTYPE_I32 || setup->vector_dtype == BEL_DTYPE_I64;
    if (whole && setup->columns != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s takes integers (%s), and a description of columns makes scaled "
                       "ones; hint: --columns none",
                       path, bel_dtype_name(setup->vector_dtype));
    }
    if (classes > 0 && bel_params_get(params, "class_count") == NULL &&
        !bel_options_is_given(options, "objective")) {
        char text[24];
        bel_snprintf(text, sizeof text, "%lld", (long long)classes);
        bel_params_set(params, "class_count", text);
    }
    return NULL;
}

// Finds the copy that a training has made, in the model's folder or, for an exporter, beside the
// checkpoint; NULL: no copy. Free with bel_free.
static char *find_copy(const bel_setup *setup, const char *digest)
{
    char *name = bel_strf("source-%s.onnx", digest);
    char *beside = setup->checkpoint != NULL ? bel_path_join(setup->checkpoint, name) : NULL;
    char *copy = bel_path_join(setup->model_dir, name);
    bool is_beside = beside != NULL && bel_file_exists(beside);
    bool is_there = !is_beside && bel_file_exists(copy);
    char *found = is_beside ? beside : is_there ? copy : NULL;
    bel_free(name);
    if (found != beside) bel_free(beside);
    if (found != copy) bel_free(copy);
    return found;
}

bel_status *bel_setup_onnx_file(const bel_options *options, bel_params *params, bel_setup *setup)
{
    char digest[33];
    const char *was = bel_params_get(params, "onnx_digest");
    if (setup->onnx_file == NULL && was != NULL) {
        setup->onnx_file = find_copy(setup, was);
        if (setup->onnx_file == NULL) {
            return BEL_ERR(BEL_NOT_FOUND,
                           "%s was trained with an ONNX model, of which %s has no copy "
                           "source-%s.onnx; hint: name the file by --model",
                           setup->checkpoint, setup->model_dir, was);
        }
    }
    if (setup->onnx_file == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "%s does not say which ONNX model it is of",
                       setup->checkpoint);
    }
    BEL_TRY(digest_of(setup->onnx_file, digest));
    if (was != NULL && strcmp(was, digest) != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s is not the model that %s was trained with; hint: leave --model out, "
                       "where the model's folder has a copy",
                       setup->onnx_file, setup->checkpoint);
    }
    BEL_TRY(look_at_onnx(setup->onnx_file, options, params, setup));
    char *copy = find_copy(setup, digest), copied[33] = "";
    bel_status *status = copy != NULL ? digest_of(copy, copied) : NULL;
    if (status == NULL && strcmp(copied, digest) == 0) {
        bel_free(setup->onnx_file);
        setup->onnx_file = copy;
        copy = NULL;
    }
    bel_free(copy);
    if (status != NULL) return status;
    bel_params_set(params, "onnx_digest", digest);
    return NULL;
}
