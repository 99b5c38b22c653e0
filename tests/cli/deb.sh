#!/usr/bin/env bash
# The Debian packages, checked without installing them: control fields, dependencies, files and their modes.
# The program must run and the library must link. cpack must fail without the programs that find a package's
# dependencies. tools/check-package installs both into a fresh system.
# usage: deb.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

skip() {
    echo "deb.sh: skipped: $1"
    finish
    exit 0
}
for program in cpack dpkg-deb dpkg-shlibdeps file; do
    command -v "$program" >/dev/null || skip "there is no $program"
done
grep -q '^BELFRY_SANITIZE:[A-Z]*=$' "$BUILD/CMakeCache.txt" || skip "nobody installs a build with sanitizers"

umask 077 # the builder's umask does not matter
run_ok cpack --config "$BUILD/CPackConfig.cmake" -G DEB -B "$work/made"
version=$("$BUILD/tools/belfry" version | sed -n 's/^belfry //p')
architecture=$(dpkg-deb -f made/belfry_*.deb Architecture)
deb=made/belfry_${version}_$architecture.deb
check "its name has version and architecture" test -f "$deb"
machine=$(uname -m)
case "$machine" in
x86_64) equal "architecture of $machine" "$architecture" amd64 ;;
aarch64) equal "architecture of $machine" "$architecture" arm64 ;;
esac

# --- Control fields
field() { dpkg-deb -f "$deb" "$1"; }
equal Package "$(field Package)" belfry
equal Version "$(field Version)" "$version"
equal Section "$(field Section)" science
equal Priority "$(field Priority)" optional
check "Maintainer has an address" grep -q '^.* <.*@.*>$' <<<"$(field Maintainer)"
check "Description has a summary and more" test "$(field Description | wc -l)" -ge 4
check "its lines are short" test -z "$(field Description | grep -E '^.{81,}')"
depends=$(field Depends)
for library in libc6 libgrpc29 libssl3 libyaml-0-2 libprotobuf-c1 zlib1g; do
    check "it depends on $library" grep -qE "(^|, )$library( |,|$)" <<<"$depends"
done
equal "development packages and libraries loaded on request" "$(grep -oE -- '-dev|openblas|mpi' <<<"$depends")" ""
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./shlibs >shlibs.txt
check "others can depend on its library" grep -qx "libbelfry ${version%.*} belfry (= $version)" shlibs.txt

equal "lines of Description that say the summary" "$(field Description | grep -c "$(field Description | head -n 1)")" 1

# --- Control fields of belfry-dev
dev=made/belfry-dev_${version}_$architecture.deb
python=made/python3-belfry_${version}_$architecture.deb
equal "packages" "$(echo made/*.deb)" "$dev $deb $python"
equal "Section of -dev" "$(dpkg-deb -f "$dev" Section)" libdevel
needs=$(dpkg-deb -f "$dev" Depends)
check "it depends on this version of belfry" grep -qF "belfry (= $version)" <<<"$needs"
# Each library that its .pc files require has a package: the package with its .so file.
dpkg-deb -x "$dev" dev
for pc in belfry-predictor belfry-learner; do
    read -ra modules < <(sed -n 's/^Requires: //p' "dev/usr/lib/pkgconfig/$pc.pc")
    check "$pc.pc requires modules" test "${#modules[@]}" -gt 0
    for module in "${modules[@]}"; do
        path=$(pkg-config --variable=libdir "$module")/$(pkg-config --libs-only-l "$module" | sed 's/ *-l\([^ ]*\).*/lib\1.so/')
        owner=$(dpkg-query -S "$path" | sed 's/:.*//')
        check "-dev depends on $owner, which $pc needs" grep -qE "(^|, )$owner(,|$)" <<<"$needs"
    done
done

# --- The Python package, with the library of the package belfry
equal "Depends of python3-belfry" "$(dpkg-deb -f "$python" Depends)" \
    "belfry (= $version), python3 (>= 3.9), python3-numpy"
dpkg-deb -x "$python" python
dpkg-deb -x "$deb" with-library
equal "its folders" "$(cd python/usr && echo *)" "lib share"
run_ok diff -r -x __pycache__ -x interface.txt "$SOURCE/python/belfry" python/usr/lib/python3/dist-packages/belfry
check "its table is that of the version" cmp "$SOURCE/tests/abi/${version%.*}.txt" \
    python/usr/lib/python3/dist-packages/belfry/interface.txt
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    run_ok env PYTHONPATH="$work/python/usr/lib/python3/dist-packages" LD_LIBRARY_PATH="$work/with-library/usr/lib" \
        PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c 'import belfry; print(belfry.__version__)'
    equal "version of the Python package" "$(cat out.txt)" "$version"
fi

# --- Without the programs that find the dependencies there is no package
for there in "" dpkg-shlibdeps file; do
    rm -rf few none
    mkdir few
    [ -z "$there" ] || ln -s "$(command -v "$there")" few/
    lacks=$([ "$there" = dpkg-shlibdeps ] && echo file || echo dpkg-shlibdeps)
    capture env PATH="$work/few" "$(command -v cpack)" --config "$BUILD/CPackConfig.cmake" -G DEB -B "$work/none"
    check "cpack fails without $lacks" test "$code" -ne 0
    check "and says so" grep -q "package needs $lacks" err.txt
    equal "packages made without $lacks" "$(find none -name '*.deb')" ""
done

# --- Files
dpkg-deb --fsys-tarfile "$deb" | tar -tv >list.txt
check "they belong to root" sh -c "! grep -v ' root/root ' list.txt"
check "folders are open" sh -c "! grep '^d' list.txt | grep -v '^drwxr-xr-x'"
check "no file is writable for others, or unreadable" sh -c "! grep '^-' list.txt | grep -vE '^-rw(-|x)r-(-|x)r-(-|x)'"
dpkg-deb -x "$deb" root
for file in bin/belfry "lib/libbelfry.so.${version%.*}" lib/libbelfry.so lib/pkgconfig/belfry.pc include/belfry/belfry.h \
    share/doc/belfry/README.md share/doc/belfry/CHANGELOG.md share/doc/belfry/cluster.yaml \
    share/doc/belfry/docs/command.md share/doc/belfry/docs/formats/checkpoint.md \
    share/doc/belfry/examples/my_model/my_model.c share/doc/belfry/examples/data/digits-train.csv; do
    check "it has $file" test -f "root/usr/$file"
done
for file in lib/libbelfry_predictor.a lib/pkgconfig/belfry-predictor.pc lib/libbelfry_learner.a \
    lib/pkgconfig/belfry-learner.pc share/doc/belfry-dev/copyright; do
    check "-dev has $file" test -f "dev/usr/$file"
    check "only -dev has $file" test ! -e "root/usr/$file"
done
check "the license is its copyright" cmp "$SOURCE/LICENSE" root/usr/share/doc/belfry/copyright
check "examples' programs are executable" test -x root/usr/share/doc/belfry/examples/clicks/make_data
check "all headers" diff -r "$SOURCE/include/belfry" root/usr/include/belfry
check "all documents" diff -r "$SOURCE/docs" root/usr/share/doc/belfry/docs
check "no path of the build" sh -c "! grep -rlF '$BUILD' root"
equal "folders in /usr" "$(cd root/usr && echo *)" "bin include lib share"
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./md5sums >root/md5sums
run_ok sh -c 'cd root && md5sum -c --quiet md5sums'

# --- It works in place
belfry() { timeout -k 5 "$patience" "$work/root/usr/bin/belfry" "$@"; }
run_ok belfry version
run_ok train m --train_steps 20
cp -r root/usr/share/doc/belfry/examples/clicks clicks
export PKG_CONFIG_PATH=$work/root/usr/lib/pkgconfig LD_LIBRARY_PATH=$work/root/usr/lib
# shellcheck disable=SC2046 # flags are words
run_ok "${CC:-cc}" clicks/clicks.c -o clicks/clicks $(pkg-config --cflags --libs belfry)
check "the program is linked with the package's library" sh -c "ldd clicks/clicks | grep -q '$work/root/usr/lib'"
finish
