// Accessors of a model for users of onnx.h. They compute nothing: decode.c has checked every
// number. Returned data belongs to the model and lives as long as it.
#include "onnx/files.h"
#include "onnx/model.h"
#include "onnx/onnx.h"

size_t bel_onnx_side_count(const bel_onnx_model *model)
{
    return model->files == NULL ? 0 : bel_onnx_files_side_count(model->files);
}

bool bel_onnx_is_mapped(const bel_onnx_model *model, int initializer)
{
    const void *elements = model->initializers[initializer].tensor.data;
    return model->files != NULL && bel_onnx_files_hold(model->files, elements);
}

int bel_onnx_input_count(const bel_onnx_model *model)
{
    return model->input_count;
}

const bel_onnx_port *bel_onnx_input(const bel_onnx_model *model, int input)
{
    return &model->inputs[input];
}

int bel_onnx_output_count(const bel_onnx_model *model)
{
    return model->output_count;
}

const bel_onnx_port *bel_onnx_output(const bel_onnx_model *model, int output)
{
    return &model->outputs[output];
}

int bel_onnx_initializer_count(const bel_onnx_model *model)
{
    return model->initializer_count;
}

const char *bel_onnx_initializer(const bel_onnx_model *model, int initializer,
                                 bel_tensor *out_tensor)
{
    *out_tensor = model->initializers[initializer].tensor;
    return model->initializers[initializer].name;
}
