// Program that compiles a kernel source with NVIDIA's NVRTC, only to check it: real_nvrtc LIBRARY
// FOLDER OPTION…. FOLDER has source.cu, headers/, and a file `names` with the headers to include
// from there, one per line. The program prints NVRTC's messages. Exit code 1: it does not compile.
//
// The stand-in (nvrtc.c) runs it if CUDA_DOUBLE_NVRTC names the library. gcc accepts kernels as C.
// This program finds errors in CUDA C++, or kernels too large for a GPU, also on a machine without
// one. It is a separate process, as that library does not tolerate every other library.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADERS = 256 };

typedef struct real_api {
    int (*create)(void **out_program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*log_size)(void *program, size_t *out_size);
    int (*log)(void *program, char *out_log);
} real_api;

static void find(void *library, const char *name, void *out_function)
{
    void *address = library != NULL ? dlsym(library, name) : NULL;
    if (address == NULL) {
        printf("%s\n", dlerror());
        exit(2);
    }
    memcpy(out_function, &address, sizeof address);
}

// Never freed, as the process ends soon.
static char *read_text(const char *folder, const char *inner, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, inner, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        printf("cannot read %s\n", path);
        exit(2);
    }
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    for (size_t got; text != NULL && (got = fread(text + size, 1, room - size - 1, file)) > 0;) {
        size += got;
        if (size + 1 == room) text = realloc(text, room *= 2);
    }
    fclose(file);
    if (text == NULL) exit(2);
    text[size] = '\0';
    return text;
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    real_api api;
    void *library = dlopen(arguments[1], RTLD_NOW), *program;
    find(library, "nvrtcCreateProgram", &api.create);
    find(library, "nvrtcCompileProgram", &api.compile);
    find(library, "nvrtcGetProgramLogSize", &api.log_size);
    find(library, "nvrtcGetProgramLog", &api.log);
    const char *names[MOST_HEADERS], *texts[MOST_HEADERS];
    int headers = 0;
    char *name = read_text(arguments[2], "/", "names");
    for (char *end; (end = strchr(name, '\n')) != NULL && headers < MOST_HEADERS; name = end + 1) {
        *end = '\0';
        names[headers] = name;
        texts[headers++] = read_text(arguments[2], "/headers/", name);
    }
    const char *source = read_text(arguments[2], "/", "source.cu");
    if (api.create(&program, source, "kernels.cu", headers, texts, names) != 0) return 1;
    int error = api.compile(program, count - 3, (const char *const *)arguments + 3);
    size_t size = 0;
    api.log_size(program, &size);
    char *log = calloc(size + 1, 1);
    if (log != NULL) api.log(program, log);
    if (error != 0 && log != NULL) printf("%s\n", log);
    return error != 0;
}
