# shellcheck shell=bash
# Functions of the benchmarks in bash: medians with quartiles, ratios of rounds, and the file of figures. Sourced.
# A peer runs in turns with Belfry, and the ratio of each round is one value, so that a machine whose speed drifts
# changes both.

# Reads numbers, one a line, and prints "MEDIAN LOW HIGH COUNT": the median and the quartiles.
spread_of() {
    sort -g | awk '{ v[NR] = $1 }
        END { if (NR) print v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)], NR }'
}
median() { spread_of | cut -d ' ' -f 1; }

# Prints the value of a field of JSON lines.
number() { sed -nE "s/.*\"$1\": ?([0-9.]+).*/\1/p"; } # FIELD

# Prints the ratio of each line of two files of numbers.
ratios() { paste "$1" "$2" | awk 'NF == 2 { printf "%.4f\n", $1 / $2 }'; } # FILE FILE

# Reads ratios, prints "MEDIAN [LOW, HIGH]" and adds them to the file $BENCH_FIGURES, if it is set. NAME: the program,
# the row and the variant, with dots.
figure() { # NAME
    local median low high count
    read -r median low high count < <(spread_of) || return 0
    if [ -n "${BENCH_FIGURES:-}" ]; then
        printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$median" "$low" "$high" "$count" >>"$BENCH_FIGURES"
    fi
    awk -v m="$median" -v l="$low" -v h="$high" 'BEGIN { printf "%.3g [%.3g, %.3g]\n", m, l, h }'
}
