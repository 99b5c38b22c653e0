#!/usr/bin/env bash
# The small libraries: examples/predictor and examples/learner, built against an installed Belfry.
# usage: predictor.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

prefix=$work/prefix
run_ok cmake --install "$BUILD" --prefix "$prefix"
pc=$(find "$prefix" -name belfry-predictor.pc)
check "belfry-predictor.pc is installed" test -f "$pc"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libraries=$(pkg-config --static --libs belfry-predictor)
equal "it requires no more libraries" "$(grep -oE 'grpc|yaml|jpeg|png|ssl|deflate' <<<"$libraries")" ""

run_ok "$BUILD/tests/make_onnx" linear linear.onnx
run_ok "$BUILD/tests/make_onnx" unknown unknown.onnx
cp -r "$SOURCE/examples/predictor" example
sanitizers=$(sed -n 's/^BELFRY_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
flags=${sanitizers:+-fsanitize=$sanitizers}
run_ok cmake -S example -B example/build -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_CXX_FLAGS=$flags"
run_ok cmake --build example/build
for program in predict predict_cpp; do
    run_ok "example/build/$program" linear.onnx 1 1 2
    equal "$program: y of 1, 1, 2" "$(cat out.txt)" "24 -82"
    capture "example/build/$program" linear.onnx 1
    check "$program: too few numbers" test "$code" -ne 0
    check "it prints the expected number" grep -q 'the model takes 3' err.txt
    capture "example/build/$program" none.onnx 1
    check "$program: there is no file" grep -q 'none.onnx: No such file' err.txt
    capture "example/build/$program" unknown.onnx 1 1 2
    check "$program: an operator is unknown" grep -q 'NoSuchOperator' err.txt
done

# Contents of a program: no part of training, and not much.
if [ -z "$sanitizers" ] && command -v nm >/dev/null; then
    nm example/build/predict >symbols.txt
    check "the linker keeps only called functions" test -s symbols.txt
    check "no gradients" sh -c "! grep -E 'bel_(grad_|ctc|conv_prepare_weights|prepare_gru_grad)' symbols.txt"
fi

# --- Programs that learn
cp -r "$SOURCE/examples/learner" learner
run_ok cmake -S learner -B learner/build -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=$flags"
run_ok cmake --build learner/build
train=(--model_dir m "${digits[@]}" --train_batch_size 32 --shuffle_buffer 1)
run_ok belfry train_and_evaluate "${train[@]}" --train_steps 20
run_fails 2 '--opset has no effect with --training' belfry export --model_dir m --training --opset 15
run_ok belfry export --model_dir m --training
equal "it prints the folder" "$(cat out.txt)" "export_dir m/export/20-training"
run_fails 1 'this export needs a new folder' belfry export --model_dir m --training
run_ok belfry export --model_dir m --training --export_dir digits.learner
check "all files are there" test -f digits.learner/signature.json -a -f digits.learner/training.onnx \
    -a -f digits.learner/prediction.onnx -a -f digits.learner/ckpt-00000020/manifest.json
equal "its checkpoint is the same" "$(digest digits.learner)" "$(digest m)"
run_ok belfry inspect digits.learner/training.onnx
check "the graph is shown" grep -q 'report:dense_0/kernel' out.txt

# The lines that the training reads next, in its order.
sed -n "$((2 + 20 * 32)),$((1 + 30 * 32))p" "$TRAIN_CSV" >next.csv
scaled() { learner/build/learn "$1" <"$2"; }
run_ok scaled digits.learner next.csv
check "ten steps" grep -q '^step 30: loss' out.txt
run_ok belfry train_and_evaluate "${train[@]}" --train_steps 30
equal "a program learns the bits of a training" "$(digest digits.learner)" "$(digest m)"
run_ok belfry evaluate --model_dir digits.learner --eval_files "$EVAL_CSV" --feature_scale 0.0625
check "the learned model is evaluated" grep -q '^global_step 30$' out.txt
run_ok belfry export --model_dir digits.learner --export_dir learned
check "and exported" test -f learned/model.onnx
run_ok belfry train_and_evaluate --model_dir digits.learner "${digits[@]}" --train_batch_size 32 --shuffle_buffer 1 --train_steps 40
run_ok belfry train_and_evaluate "${train[@]}" --train_steps 40
equal "a training continues from there" "$(digest digits.learner)" "$(digest m)"

# Bad data, files and folders change nothing.
before=$(digest digits.learner)
sed '40s/[0-9]*$/10/' next.csv >bad.csv # an invalid class, in the second batch
capture scaled digits.learner "$TRAIN_CSV" # with a header
check "a line without numbers ends it" test "$code" -ne 0
check "it says so" grep -q 'line 1: expected 64 numbers and a class' err.txt
capture scaled digits.learner bad.csv
check "a bad label ends it" test "$code" -ne 0
check "it names the label and its place" grep -qE 'step 41: .*10' err.txt
equal "nothing was saved" "$(digest digits.learner)" "$before"
for file in training.onnx prediction.onnx; do
    cp -r digits.learner damaged
    printf '\377' | dd of=damaged/$file bs=1 seek=700 conv=notrunc status=none
    capture scaled damaged next.csv
    check "$file is damaged" grep -q "$file is damaged: expected" err.txt
    rm -r damaged
done
cp -r digits.learner damaged && truncate -s 20 damaged/signature.json
capture scaled damaged next.csv
check "a signature that is cut off" grep -q 'signature.json:1:20: not valid JSON' err.txt
rm -r damaged
cp -r digits.learner damaged && sed -i 's/"learning_rate":"0/"learning_rate":"1/; s/"beta1"/"beta2"/' damaged/signature.json
sed -i 's/"param.learning_rate":"0.001"/"param.learning_rate":"0.002"/' damaged/signature.json
capture scaled damaged next.csv
check "a changed digit of the signature" grep -q 'signature.json: it is damaged, or was changed' err.txt
rm -r damaged
capture scaled none next.csv
check "there is no folder" grep -q 'none/signature.json: No such file' err.txt
capture scaled learned next.csv
check "an exported model is not a training" grep -q 'no exported training; hint: belfry export --training' err.txt
cp -r digits.learner bare && rm -r bare/ckpt-*
capture scaled bare next.csv
check "there is no checkpoint" grep -q 'bare is no checkpoint, and contains none' err.txt
run_ok belfry train_and_evaluate --model_dir wide "${digits[@]}" --hidden_units 48 --train_steps 1
cp -r wide/ckpt-00000001 bare/
capture scaled bare next.csv
check "a checkpoint of another model" grep -q 'is of another model: it has no variable' err.txt

finish
