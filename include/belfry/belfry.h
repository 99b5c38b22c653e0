/// All public headers. Include only this one. Reading order: estimator.h, model.h, dataset.h,
/// columns.h, tokens.h, features.h, ops.h, graph.h, package.h, checkpoint.h, predictor.h,
/// learner.h.
///
/// **Structs with a size.** A struct whose first member is `size` may get more fields in a later
/// version. Set it to the sizeof of your own: `bel_train_spec train = {.size = sizeof train}`.
/// Those with defaults have a function, such as bel_run_config_init. The library reads and writes
/// no byte beyond the size. INVALID_ARGUMENT: the size is unset, or a field is set that an older
/// library lacks. Structs without a size, and those inside other structs, stay as they are.
#ifndef BELFRY_BELFRY_H
#define BELFRY_BELFRY_H

#include "belfry/checkpoint.h"
#include "belfry/collective.h"
#include "belfry/columns.h"
#include "belfry/dataset.h"
#include "belfry/ddl.h"
#include "belfry/estimator.h"
#include "belfry/features.h"
#include "belfry/graph.h"
#include "belfry/learner.h"
#include "belfry/model.h"
#include "belfry/onnx.h"
#include "belfry/ops.h"
#include "belfry/optimizer.h"
#include "belfry/package.h"
#include "belfry/predictor.h"
#include "belfry/replica.h"
#include "belfry/run.h"
#include "belfry/status.h"
#include "belfry/tensor.h"
#include "belfry/tokens.h"

#endif
