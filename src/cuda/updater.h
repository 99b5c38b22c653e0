// Parameter updates on GPUs: an implementation of optim/updater.h.
#ifndef BELFRY_CUDA_UPDATER_H
#define BELFRY_CUDA_UPDATER_H

#include "optim/updater.h"
#include "runtime/program.h"

// Allocates zeroed memory for values and gradients of `elements` each. devices [towers] are GPUs;
// several towers may share one. Replica r runs on tower r % towers. Errors: RESOURCE_EXHAUSTED; the
// driver's. INVALID_ARGUMENT: more replicas than BEL_UPDATER_REPLICAS.
bel_status *bel_cuda_updater_create(bel_device *const *devices, int towers, int replicas,
                                    int64_t elements, bel_updater **out_updater) BEL_MUST_USE;

#endif
