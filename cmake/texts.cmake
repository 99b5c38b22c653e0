# Writes OUT, a C file with the texts of FILES (names below ROOT, separated by "|"): src/cuda/texts.h.
string(REPLACE "|" ";" files "${FILES}")
set(code "// Made by cmake/texts.cmake.\n#include \"cuda/texts.h\"\n\n#include <string.h>\n\n")
set(rows "")
set(count 0)
foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND code "static const unsigned char text_${count}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${file}\", (const char *)text_${count}},\n")
    math(EXPR count "${count} + 1")
endforeach()
string(APPEND code "\nconst bel_cuda_text bel_cuda_texts[] = {\n${rows}};\nconst int bel_cuda_text_count = ${count};\n")
string(APPEND code "
const char *bel_cuda_text_of(const char *name)
{
    for (int i = 0; i < bel_cuda_text_count; i++)
        if (strcmp(bel_cuda_texts[i].name, name) == 0) return bel_cuda_texts[i].text;
    return NULL;
}
")
file(WRITE ${OUT} "${code}")
