# Calls between rooms that docs/layers.txt does not allow, from the `nm -A -P` of each object (tools/lint --objects).
# usage: awk -f symbols.awk docs/layers.txt SYMBOLS     (lines "room/file.c.o: symbol type …")

function room_of(path,   name, best) { # the longest room that contains the path
    best = ""
    for (name in allowed)
        if (index(path, name "/") == 1 && length(name) > length(best)) best = name
    return best
}

function visit(file,   other) { # marks the files that it reaches by calls within its room
    for (other in calls)
        if (index(other, file SUBSEP) == 1) {
            other = substr(other, length(file) + 2)
            if (!(other in reached)) {
                reached[other]
                visit(other)
            }
        }
}

FILENAME == ARGV[1] {
    if ($1 == "#" && $2 == "circle:") {
        for (i = 3; i <= NF; i++) {
            name = $i
            last = sub(/:$/, "", name)
            defended[name] = FNR
            if (last) break
        }
    }
    if (/^#/ || !NF) next
    room = $1
    sub(/:$/, "", room)
    allowed[room] = " "
    for (i = 2; i <= NF; i++) allowed[room] = allowed[room] $i " "
    next
}

{
    file = $1
    sub(/\.o:$/, "", file)
    if ($3 == "U") {
        wanted[file SUBSEP $2]
    } else if ($3 ~ /^[TDBRCVW]$/) {
        owner[$2] = file
    }
}

END {
    for (pair in wanted) {
        split(pair, part, SUBSEP)
        if (!(part[2] in owner) || owner[part[2]] == part[1]) continue
        from = room_of(part[1])
        to = room_of(owner[part[2]])
        if (from == to) {
            calls[part[1], owner[part[2]]]
            files[part[1]]
        } else if (to != "base" && index(allowed[from], " " to " ") == 0 &&
                   index(allowed[from], " public ") == 0) {
            printf "src/%s: %s may not call %s (%s of %s)\n", part[1], from, to, part[2], owner[part[2]]
        }
    }
    for (file in files) {
        if (file in defended) continue
        split("", reached)
        visit(file)
        if (file in reached) printf "src/%s: files of this room call each other in a circle\n", file
    }
}
