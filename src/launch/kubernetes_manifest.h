// What Kubernetes is asked for: the YAML text of a job, and the names in it. docs/kubernetes.md is
// the manual.
//
// A JobSet (jobset.x-k8s.io/v1alpha2) has a replicated job for each role, whose pods are numbered
// from 0. They get BELFRY_TASK and BELFRY_TASK_INDEX, meet at the master's name in the job's
// network, and are started again by Kubernetes: their starts are counted in the model's folder. A
// TFJob (kubeflow.org/v1) has a replica spec for each role, and its pods TF_CONFIG.
#ifndef BELFRY_LAUNCH_KUBERNETES_MANIFEST_H
#define BELFRY_LAUNCH_KUBERNETES_MANIFEST_H

#include "launch/plan.h"
#include "launch/registry.h"

// INVALID_ARGUMENT: the cluster file does not say the image or the volume, or says what cannot be
// met there: hosts, a file with the secret, TLS.
bel_status *bel_kubernetes_check(const bel_cluster *cluster) BEL_MUST_USE;

// Appends the text. `secret` is the job's, for a Secret of its own; it does not count where the
// cluster names one. INVALID_ARGUMENT: a name that pods cannot have, a model's folder that is not
// on the volume.
bel_status *bel_kubernetes_write(const bel_job_record *record, const bel_plan *plan,
                                 const char *secret, bel_str *out) BEL_MUST_USE;

// "jobset" or "tfjob", as kubectl calls it.
const char *bel_kubernetes_kind(const bel_cluster *cluster);

// The label by which all pods of a job of that kind are found, without its value.
const char *bel_kubernetes_label(const char *kind);

#endif
