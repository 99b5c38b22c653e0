// Reader of TensorFlow's variable TF_CONFIG.
#ifndef BELFRY_LAUNCH_TASK_TASK_TF_CONFIG_H
#define BELFRY_LAUNCH_TASK_TASK_TF_CONFIG_H

#include "base/json.h"
#include "launch/task/task.h"

#define BEL_TF_CONFIG "TF_CONFIG"

// Fills a task that is zero except for its secret and its limits. Without a cluster it sets
// *out_alone instead, which starts as false. INVALID_ARGUMENT names the member and the expected
// value.
bel_status *bel_task_read_tf_config(const bel_json_value *root, bool chief_trains, bel_task *task,
                                    bool *out_alone) BEL_MUST_USE;

#endif
