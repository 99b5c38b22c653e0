/// All public headers. Include only this one. Reading order: estimator.h, model.h, dataset.h,
/// columns.h, features.h, ops.h, graph.h, package.h, checkpoint.h, predictor.h, learner.h.
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

#endif
