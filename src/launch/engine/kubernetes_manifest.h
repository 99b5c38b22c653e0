// YAML manifest of a job for Kubernetes, and its names. docs/kubernetes.md is the manual.
//
// A JobSet (jobset.x-k8s.io/v1alpha2) has a replicated job for each role, with pods numbered from
// 0. The pods get BELFRY_TASK and BELFRY_TASK_INDEX and meet at the master's name in the job's
// network. Kubernetes restarts them, so their starts are counted in the model folder. A TFJob
// (kubeflow.org/v1) has a replica spec for each role, and its pods get TF_CONFIG.
#ifndef BELFRY_LAUNCH_ENGINE_KUBERNETES_MANIFEST_H
#define BELFRY_LAUNCH_ENGINE_KUBERNETES_MANIFEST_H

#include "launch/cluster/plan.h"
#include "launch/engine/registry.h"

// INVALID_ARGUMENT: the cluster file lacks the image or the volume, or has keys that Kubernetes
// cannot support: hosts, a secret file, TLS.
bel_status *bel_kubernetes_check(const bel_cluster *cluster) BEL_MUST_USE;

// Appends the manifest. `secret` goes into a Secret object of the job; it is ignored if the cluster
// names one. INVALID_ARGUMENT: an invalid pod name, or a model folder outside the volume.
bel_status *bel_kubernetes_write(const bel_job_record *record, const bel_plan *plan,
                                 const char *secret, bel_str *out) BEL_MUST_USE;

// Returns "jobset" or "tfjob", kubectl's names.
const char *bel_kubernetes_kind(const bel_cluster *cluster);

// Returns the key of the label that all pods of a job of that kind have.
const char *bel_kubernetes_label(const char *kind);

#endif
