#!/usr/bin/env bash
# The binary interface of the shared library is that of tests/abi/VERSION.txt, for the major and minor version in the
# name of the library. After a change on purpose of a version that is not released yet:
#   python3 tests/cli/abi.py include >tests/abi/VERSION.txt
# After a release, raise the minor version (the major one from 1.0 on) in CMakeLists.txt first.
# usage: abi.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

if [ "$(uname -m)" != x86_64 ]; then
    echo "abi.sh: skipped: layouts are those of x86-64"
    exit 0
fi
library=$BUILD/libbelfry.so
version=$("$BUILD/tools/belfry" version | sed -nE 's/^belfry ([0-9]+\.[0-9]+)\..*/\1/p')
check "the library has a name for each minor version" \
    grep -q "SONAME.*\[libbelfry.so.$version\]" <(readelf -d "$library")

expected=$SOURCE/tests/abi/$version.txt
python3 "$SOURCE/tests/cli/abi.py" "$SOURCE/include" >interface.txt
diff "$expected" interface.txt >difference.txt || cat difference.txt
check "the interface is that of $version" test ! -s difference.txt

nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | sort >exported.txt
grep -v '^typedef' interface.txt | sed -nE 's/^[^#=(]*[ *](bel_[a-z0-9_]+)\(.*/\1/p' | sort -u >declared.txt
diff declared.txt exported.txt >difference.txt || cat difference.txt
check "functions that are declared are exported, and no others" test ! -s difference.txt

# --- Changes are found
changed() { # WHAT SED FILE
    rm -rf include
    cp -r "$SOURCE/include" include
    sed -i "$2" "include/belfry/$3"
    run_ok python3 "$SOURCE/tests/cli/abi.py" include
    check "a change is found: $1" test -n "$(diff "$expected" out.txt | head -1)"
}
run_ok cp -r "$SOURCE/include" padded
sed -i 's|^    size_t state_bytes; .*0: none$|&\n    int more;|' padded/belfry/replica.h
check "padding at the end of a struct with a size is an error" \
    test -n "$(python3 "$SOURCE/tests/cli/abi.py" padded 2>&1 | grep 'bel_loop ends in padding')"
changed "a field more" 's|^    uint64_t seed; .*|    uint64_t seed;\n    int more;|' run.h
changed "a value in between" 's|^    BEL_REDUCE_MEAN,|    BEL_REDUCE_MEDIAN,\n    BEL_REDUCE_MEAN,|' collective.h
changed "another type of a field" 's|^    int num_gpus;|    float num_gpus;|' run.h
changed "another argument of a callback" 's|bel_model_fn(bel_model_context \*context|bel_model_fn(void *context|' model.h
changed "another type of an argument" 's|int bel_checkpoint_find(const|long bel_checkpoint_find(const|' checkpoint.h
finish
