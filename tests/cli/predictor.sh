#!/usr/bin/env bash
# The library of programs that only run models: examples/predictor, built against an installed Belfry.
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
equal "it asks for no more" "$(grep -oE 'grpc|yaml|jpeg|png|ssl|deflate' <<<"$libraries")" ""

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
    check "it says how many" grep -q 'the model takes 3' err.txt
    capture "example/build/$program" none.onnx 1
    check "$program: there is no file" grep -q 'none.onnx: No such file' err.txt
    capture "example/build/$program" unknown.onnx 1 1 2
    check "$program: an operator is unknown" grep -q 'NoSuchOperator' err.txt
done

# What a program has of it: nothing of training, and not much.
if [ -z "$sanitizers" ] && command -v nm >/dev/null; then
    nm example/build/predict >symbols.txt
    check "the linker has left out what is not called" test -s symbols.txt
    check "no gradients" sh -c "! grep -E 'bel_(grad_|ctc|conv_prepare_weights|prepare_gru_grad)' symbols.txt"
fi
finish
