// Tasks of TensorFlow's variable TF_CONFIG.
#ifndef BELFRY_LAUNCH_TASK_TF_CONFIG_H
#define BELFRY_LAUNCH_TASK_TF_CONFIG_H

#include "base/json.h"
#include "launch/task.h"

#define BEL_TF_CONFIG "TF_CONFIG"

// Fills a task that is zero but for its secret and its limits. Sets *out_alone, false before, in
// place of that when there is no cluster. INVALID_ARGUMENT names the member and what was expected.
bel_status *bel_task_read_tf_config(const bel_json_value *root, bool chief_trains, bel_task *task,
                                    bool *out_alone) BEL_MUST_USE;

#endif
