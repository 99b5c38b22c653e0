// Updates on cards: an implementation of optim/updater.h.
#ifndef BELFRY_CUDA_UPDATER_H
#define BELFRY_CUDA_UPDATER_H

#include "optim/updater.h"
#include "runtime/program.h"

// Memory for values and gradients of `elements` each, with zeros. devices [towers] are cards, of
// which several towers may share one; replica r runs on tower r % towers. Errors:
// RESOURCE_EXHAUSTED; the driver's. INVALID_ARGUMENT: more replicas than BEL_UPDATER_REPLICAS.
bel_status *bel_cuda_updater_create(bel_device *const *devices, int towers, int replicas,
                                    int64_t elements, bel_updater **out_updater) BEL_MUST_USE;

#endif
