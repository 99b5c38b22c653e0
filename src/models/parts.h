// What the canned models share: layers with a penalty, and the classifier's head. Written, like
// the models, against the public headers only.
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
bel_model_fn bel_onnx_file_model;

// A whole number from the model's parameters; outside [low, high] it is a sticky error that names
// the parameter.
int64_t bel_part_whole(bel_model_context *context, const char *name, int64_t otherwise, int64_t low,
                       int64_t high);

// A list of layer sizes from 1 to `high`, at most BEL_PART_MAX_LAYERS; returns their number. A bad
// one is a sticky error that names the parameter.
int bel_part_layers(bel_model_context *context, const char *name, const char *otherwise,
                    int64_t high, int64_t out_sizes[BEL_PART_MAX_LAYERS]);

// Dense layers "dense_0", … of these sizes, each with a relu behind it and, in TRAIN, dropout by
// parameter dropout (0).
bel_value *bel_part_dense_layers(bel_model_context *context, bel_value *x, const int64_t *units,
                                 int layer_count, bel_value **penalty);

// A dense layer as bel_dense makes it: x [n, in] -> [n, units], variables "name/kernel" and
// "name/bias". With parameter l2 > 0 its share of the penalty, l2 · half the sum of the kernel's
// squares, is added to *penalty (NULL: nothing yet).
bel_value *bel_part_dense(bel_model_context *context, bel_value *x, int64_t units, const char *name,
                          bel_value **penalty);

// The numbers of an example [n, in], as bel_columns_layer makes them with parameter embedding_width
// (16): anything else is a sticky error that says so.
bel_value *bel_part_numbers(bel_model_context *context);

// The only feature as images [n, c, h, w]: as it is, or made of [n, h, w] (one channel) or [n,
// c·h·w] with parameter image_shape ("c,h,w"; without it one square channel). Else a sticky error.
bel_value *bel_part_images(bel_model_context *context);

// The kernel of a layer that was just built: the same name again gives the same variable.
bel_value *bel_part_kernel(bel_model_context *context, const char *layer, const bel_shape *shape);

// Adds parameter l2 times half the sum of squares of `kernel` to *penalty (NULL: nothing yet).
void bel_part_add_penalty(bel_model_context *context, bel_value *kernel, bel_value **penalty);

// How many numbers the last layer gives: class_count (10) of the objective classification, else 1.
int64_t bel_part_outputs(bel_model_context *context);

// Completes a model from the outputs [n, bel_part_outputs] of its last layer: predictions; with
// labels the loss (+ penalty) and metrics; the optimizer (objectives.c).
void bel_part_finish(bel_model_context *context, bel_estimator_spec *spec, bel_value *outputs,
                     bel_value *penalty);

#endif
