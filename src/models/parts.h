// Parts that the canned models share: layers with a penalty, and the classifier's head. Like the
// models, they use only the public headers.
#ifndef BELFRY_MODELS_PARTS_H
#define BELFRY_MODELS_PARTS_H

#include "belfry/package.h"

enum { BEL_PART_MAX_CLASSES = 1 << 20, BEL_PART_MAX_LAYERS = 1 << 14 };

// The models; models.c lists them.
bel_model_fn bel_linear_model;
bel_model_fn bel_dnn_model;
bel_model_fn bel_cnn_model;
bel_model_fn bel_resnet_model;
bel_model_fn bel_wide_deep_model;
bel_model_fn bel_gru_model;
bel_model_fn bel_lstm_model;
bel_model_fn bel_gpt_model;
bel_model_fn bel_encoder_model;
bel_model_fn bel_onnx_file_model;

// Reads an integer parameter of the model; outside [low, high] it is a sticky error that names the
// parameter.
int64_t bel_part_whole(bel_model_context *context, const char *name, int64_t otherwise, int64_t low,
                       int64_t high);

// Reads a list of at most BEL_PART_MAX_LAYERS layer sizes from 1 to `high`; returns their number.
// An invalid list is a sticky error that names the parameter.
int bel_part_layers(bel_model_context *context, const char *name, const char *otherwise,
                    int64_t high, int64_t out_sizes[BEL_PART_MAX_LAYERS]);

// Builds dense layers "dense_0", … of these sizes, each followed by a relu and, in TRAIN, dropout
// by parameter dropout (0).
bel_value *bel_part_dense_layers(bel_model_context *context, bel_value *x, const int64_t *units,
                                 int layer_count, bel_value **penalty);

// Builds a dense layer like bel_dense: x [n, in] -> [n, units], variables "name/kernel" and
// "name/bias". With parameter l2 > 0 it adds the layer's share of the penalty, l2 · half the sum of
// the kernel's squares, to *penalty (NULL: nothing yet).
bel_value *bel_part_dense(bel_model_context *context, bel_value *x, int64_t units, const char *name,
                          bel_value **penalty);

// The numbers of an example [n, in], made by bel_columns_layer with parameter embedding_width (16).
// Any other shape is a sticky error.
bel_value *bel_part_numbers(bel_model_context *context);

// The only feature as images [n, c, h, w]: unchanged, or made from [n, h, w] (one channel) or [n,
// c·h·w] with parameter image_shape ("c,h,w"; without it one square channel). Any other shape is a
// sticky error.
bel_value *bel_part_images(bel_model_context *context);

// The kernel of a layer that was just built: the same name gives the same variable.
bel_value *bel_part_kernel(bel_model_context *context, const char *layer, const bel_shape *shape);

// Adds parameter l2 times half the sum of squares of `kernel` to *penalty (NULL: nothing yet).
void bel_part_add_penalty(bel_model_context *context, bel_value *kernel, bel_value **penalty);

// Number of outputs of the last layer: class_count (10) for the objective classification, else 1.
int64_t bel_part_outputs(bel_model_context *context);

// Completes a model from the outputs [n, bel_part_outputs] of its last layer: sets predictions and
// the optimizer, and, if labels exist, the loss (+ penalty) and metrics (objectives.c).
void bel_part_finish(bel_model_context *context, bel_estimator_spec *spec, bel_value *outputs,
                     bel_value *penalty);

#endif
