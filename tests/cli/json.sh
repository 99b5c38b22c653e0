#!/usr/bin/env bash
# JSON: every line that should be JSON is an object; text and JSON do not mix.
# usage: json.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

is_json() { # FILE: at least one line, and each an object
    [ -s "$1" ] || return 1
    python3 - "$1" <<'END'
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    assert isinstance(json.loads(line), dict), line
END
}
has() { # FILE KEY…: the first line has these members
    python3 - "$@" <<'END'
import json, sys
found = json.loads(open(sys.argv[1], encoding="utf-8").readline())
missing = [key for key in sys.argv[2:] if key not in found]
assert not missing, missing
END
}

run_ok train timed --train_steps 2 --log_time
equal "lines of text without their time" "$(grep -cvE '^20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9] [a-z0-9]' err.txt)" 0
check "and with it" grep -qE '^20.* steps 0 to 2;' err.txt
run_ok belfry local train --distributed --job_dir job-timed --log_time -- "${digits[@]}" --train_steps 2
check "a job's, too" grep -qE '^20.* steps 0 to 2;' err.txt
capture train untimed --train_steps 2 --log_time --log_format json
equal "code of a flag without effect" "$code" 2
check "it is named" grep -q -- '--log_time has no effect without --log_format text' err.txt

run_ok train a --train_steps 40 --save_checkpoints_steps 20 --log_step_count_steps 1 --json \
    --log_format json --log_level debug
check "the log is JSON" is_json err.txt
check "the result is JSON" is_json out.txt
equal "results are one line" "$(wc -l <out.txt)" 1
check "members of training" has out.txt global_step evaluation_step loss accuracy examples digest train_seconds \
    examples_per_second interrupted batch_mean_loss
check "python's tool agrees" python3 -m json.tool out.txt /dev/null

run_ok belfry evaluate --model_dir a --eval_files "$EVAL_CSV" --json --log_format json
check "evaluate is JSON" is_json out.txt
check "members of evaluate" has out.txt global_step loss accuracy examples
run_ok belfry predict --model_dir a --eval_files "$EVAL_CSV" --label_column digit --json --quiet
check "predict is JSON" is_json out.txt
check "members of predict" has out.txt example class values
check "quiet is quiet" test ! -s err.txt
run_ok belfry inspect a --json
check "inspect is JSON" is_json out.txt
check "members of inspect" has out.txt step seed digest best settings tensors
run_ok belfry inspect a --digest --json
check "members of the digest" has out.txt digest
run_ok belfry bisect a a --json
check "bisect is JSON" is_json out.txt
check "members of bisect" has out.txt equal compared left_out step equal_step settings differences curve next
run_ok belfry doctor --json --model_dir a
check "doctor is JSON" is_json out.txt
check "members of doctor" has out.txt checks ok
run_ok belfry version --json
check "members of version" has out.txt version package_abi isa

# Errors too, wherever the flag is, whatever bytes a name has.
capture belfry inspect "no \"such
folder" --log_format json
equal "exit code" "$code" 3
check "an error is JSON" is_json err.txt
check "members of an error" has err.txt time level code message
capture belfry train --nonsense 1 --log_format=json
equal "exit code" "$code" 2
check "an error before the flag is JSON" is_json err.txt
capture belfry inspect $'no \xe9 such' --log_format json
check "an error is JSON whatever bytes a name has" is_json err.txt
run_fails 3 'no such?folder' belfry inspect "no such
folder"

# A line of predictions has each name once.
cat >named.c <<'END'
#include <belfry/belfry.h>
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *graph = bel_context_graph(context);
    bel_value *logits = bel_dense(graph, bel_context_only_feature(context), 10, "logits");
    bel_value *labels = bel_context_labels(context);
    bel_output_add(context, spec, bel_context_param(context, "output", "raw"), logits);
    if (labels != NULL) bel_loss_set(spec, bel_mean(graph, bel_softmax_cross_entropy(graph, logits, labels)));
    bel_predictions_set(spec, bel_softmax(graph, logits));
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.01};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}
BEL_PACKAGE(.name = "named", .description = "", .model_fn = model_fn)
END
"${CC:-cc}" -shared -fPIC -I"$SOURCE/include" named.c -o named.so
run_ok train named --package ./named.so --train_steps 2
predicting=(--package ./named.so --model_dir named --eval_files "$EVAL_CSV" --label_column digit --json)
run_ok belfry predict "${predicting[@]}" --outputs raw,predictions
check "outputs in their order" grep -qE '^\{"example":0,"raw":\[.*,"class":[0-9],"values":\[' out.txt
run_ok belfry predict "${predicting[@]:0:8}" --outputs raw,predictions
check "text has the names of outputs" sh -c "head -n 1 out.txt |
    grep -qE '^raw_0,raw_1,(raw_[2-8],){7}raw_9,class,values_0,(values_[1-8],){8}values_9\$'"
equal "numbers in a line" "$(sed -n '2s/[^,]//gp' out.txt | tr -d '\n' | wc -c)" 20
equal "headers" "$(grep -c raw out.txt)" 1
cp out.txt whole.txt
for part in 0 1; do run_ok belfry predict "${predicting[@]:0:8}" --outputs raw,predictions --part $part/2 && cat out.txt; done >parts.txt
check "only the first part has a header" cmp -s whole.txt parts.txt
run_ok belfry predict "${predicting[@]:0:8}" --outputs predictions
check "without names there is none" grep -qE '^[0-9],' <(head -n 1 out.txt)
run_fails 2 '--outputs: "raw" is named twice' belfry predict "${predicting[@]}" --outputs raw,predictions,raw
run_fails 2 '--json: the prediction "class" has the name' belfry predict "${predicting[@]}" --param output=class

finish
