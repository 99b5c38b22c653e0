// Table of the models that come with Belfry, in the form of a user's shared-object package: the
// caller of a model function does not know where it comes from. They are listed in this order, and
// --model accepts their names.
#include <stddef.h>
#include <string.h>

#include "models/parts.h"

#define MODEL(title, what, function)                                                               \
    {                                                                                              \
        .abi = BEL_PACKAGE_ABI, .size = sizeof(bel_package), .name = (title),                      \
        .description = (what), .model_fn = (function)                                              \
    }

static const bel_package models[] = {
    MODEL("linear", "softmax regression", bel_linear_model),
    MODEL("dnn", "multi-layer perceptron with relu and dropout", bel_dnn_model),
    MODEL("cnn", "convolutions with pools, then dense layers", bel_cnn_model),
    MODEL("resnet", "residual network with batch normalization", bel_resnet_model),
    MODEL("wide_deep", "weights and embeddings of ids, with hidden layers", bel_wide_deep_model),
    MODEL("gru", "recurrent classifier of sequences, gated units", bel_gru_model),
    MODEL("lstm", "recurrent classifier of sequences, long short-term memory", bel_lstm_model),
    MODEL("gpt", "transformer that predicts the next token of a text", bel_gpt_model),
    MODEL("encoder", "transformer that guesses hidden tokens, or classifies texts",
          bel_encoder_model),
    MODEL("onnx", "a graph that another tool has made", bel_onnx_file_model),
};

enum { MODEL_COUNT = sizeof models / sizeof models[0] };

const bel_package *bel_model_at(int index)
{
    return index >= 0 && index < MODEL_COUNT ? &models[index] : NULL;
}

const bel_package *bel_model_find(const char *name)
{
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}
