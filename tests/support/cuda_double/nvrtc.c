// Stand-in for libnvrtc.so: compiles for the GPU with gcc, so that kernels run on the CPU. A
// program's source and headers are written into a private folder. The result, the "cubin", is a
// shared object that the stand-in for libcuda.so.1 loads (launch.c).
//
// Results equal those of the CPU's arithmetic bit for bit only if each operation is rounded
// separately. A GPU fuses products and sums unless it gets --fmad=false, and so does this stand-in.
// If accesses are checked, gcc's instrumentation for its thread sanitizer finds them all. Its calls
// are renamed in the assembly, so the sanitizer's runtime is not needed. The names of system
// headers mean the system's, even if the caller brings stand-ins for them (-idirafter).
//
// No file is left in the temporary folder. One thread at a time uses a program, as with NVIDIA's
// NVRTC; different threads may use different programs.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define API(name, arguments)                                                                       \
    __attribute__((visibility("default"))) int name arguments;                                     \
    int name arguments

enum {
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    INTERNAL_ERROR = 11,
    MOST_WORDS = 96
};

// Bytes of a text or a file, with a final 0 that `size` does not count.
typedef struct bytes {
    char *data;
    size_t size;
} bytes;

typedef struct program {
    char *source;
    int header_count;
    char **headers, **header_names;
    bytes log, cubin;
} program;

static void *need(void *memory)
{
    if (memory != NULL) return memory;
    fprintf(stderr, "cuda double: no memory\n");
    abort();
}

static char *copy_text(const char *text)
{
    return need(strdup(text));
}

// Concatenates the two parts of a path or an option.
static char *join(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = need(malloc(size));
    snprintf(text, size, "%s%s", a, b);
    return text;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool checks_are_on(void)
{
    const char *text = getenv("CUDA_DOUBLE_CHECKS");
    return text == NULL || strcmp(text, "0") != 0;
}

// --- Files ---------------------------------------------------------------------------------------

static int remove_entry(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)what;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// Writes folder/name and creates the folders in `name`.
static bool write_file(const char *folder, const char *name, const char *data, size_t size)
{
    char *path = join(folder, name);
    for (char *slash = path + strlen(folder); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(data, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0) ok = false;
    free(path);
    return ok;
}

static bool read_file(const char *folder, const char *name, bytes *out)
{
    char *path = join(folder, name);
    FILE *file = fopen(path, "rb");
    free(path);
    if (file == NULL) return false;
    struct stat state;
    bool ok = fstat(fileno(file), &state) == 0;
    out->size = ok ? (size_t)state.st_size : 0;
    out->data = need(malloc(out->size + 1));
    ok = ok && fread(out->data, 1, out->size, file) == out->size;
    out->data[out->size] = '\0';
    fclose(file);
    if (!ok) {
        free(out->data);
        *out = (bytes){NULL, 0};
    }
    return ok;
}

// --- gcc -----------------------------------------------------------------------------------------

typedef struct command {
    char *words[MOST_WORDS + 1];
    int count;
} command;

static void add_word(command *c, char *word)
{
    if (c->count == MOST_WORDS) {
        fprintf(stderr, "cuda double: more than %d words for the compiler\n", MOST_WORDS);
        abort();
    }
    c->words[c->count++] = word;
    c->words[c->count] = NULL;
}

static void add_words(command *c, const char *words)
{
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (length > 0) add_word(c, need(strndup(words, length)));
        words += length + (words[length] == ' ');
    }
}

// Uses gcc always: clang removes reads that a write to the same address follows.
static void begin_command(command *c)
{
    const char *compiler = getenv("CC");
    *c = (command){0};
    bool usable = compiler != NULL && *compiler != '\0' && strstr(compiler, "clang") == NULL;
    add_words(c, usable ? compiler : "gcc");
}

// Runs and frees the command. Its output is appended to folder/log.
static bool run_command(command *c, const char *folder)
{
    char *log = join(folder, "/log");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child;
    int state = -1, error = posix_spawnp(&child, c->words[0], &files, NULL, c->words, environ);
    if (error == 0) {
        while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
        }
    } else {
        char said[256];
        int length = snprintf(said, sizeof said, "%s: %s\n", c->words[0], strerror(error));
        write_file(folder, "/log", said, (size_t)length);
    }
    posix_spawn_file_actions_destroy(&files);
    free(log);
    for (int i = 0; i < c->count; i++)
        free(c->words[i]);
    return error == 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

// --- Options -------------------------------------------------------------------------------------

typedef struct settings {
    bool fuse, real_card; // real_card: the architecture is sm_NUMBER, so there is a cubin
} settings;

// Reads CUDA's options. Macros are passed to gcc; of the others only two matter here.
static bool read_options(int count, const char *const *options, command *c, settings *out)
{
    *out = (settings){.fuse = true};
    for (int i = 0; i < count; i++) {
        const char *option = options[i];
        if (option[0] != '-') return false;
        bool has_value = i + 1 < count && options[i + 1][0] != '-';
        if (strcmp(option, "-D") == 0 || strcmp(option, "--define-macro") == 0) {
            if (!has_value) return false;
            add_word(c, join("-D", options[++i]));
        } else if (begins(option, "--define-macro=")) {
            add_word(c, join("-D", strchr(option, '=') + 1));
        } else if (begins(option, "-D")) {
            add_word(c, copy_text(option));
        } else if (strcmp(option, "--fmad=false") == 0 || strcmp(option, "-fmad=false") == 0) {
            out->fuse = false;
        } else if (begins(option, "--gpu-architecture=") || begins(option, "-arch=")) {
            out->real_card = begins(strchr(option, '=') + 1, "sm_");
        } else if (has_value) { // the two-word form: an option and its value
            if (strcmp(option, "--gpu-architecture") == 0 || strcmp(option, "-arch") == 0)
                out->real_card = begins(options[i + 1], "sm_");
            i++;
        }
    }
    return true;
}

// --- Assembly ------------------------------------------------------------------------------------

static bool is_part_of_name(char c)
{
    return c == '_' || c == '.' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

// Copies the assembly with gcc's hooks and the memory functions renamed. Compares complete
// names, as the hooks' names end in those of the functions.
static bytes rename_hooks(const bytes *in)
{
    static const char *const functions[] = {"memcpy", "memmove", "memset", "memcmp"};
    // A name has 6 characters or more, and grows by at most 9 ("bel_hook_").
    bytes out = {need(malloc(in->size * 3 + 1)), 0};
    for (size_t i = 0; i < in->size;) {
        size_t end = i;
        while (end < in->size && is_part_of_name(in->data[end]))
            end++;
        size_t length = end - i, skip = 0;
        const char *name = in->data + i, *prefix = "";
        if (length > 7 && strncmp(name, "__tsan_", 7) == 0) {
            prefix = "bel_hook_";
            skip = 7;
        }
        for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
            if (length == strlen(functions[f]) && strncmp(name, functions[f], length) == 0)
                prefix = "bel_hook_";
        if (length == 0) length = 1; // not a name
        size_t prefix_length = strlen(prefix);
        memcpy(out.data + out.size, prefix, prefix_length);
        memcpy(out.data + out.size + prefix_length, name + skip, length - skip);
        out.size += prefix_length + length - skip;
        i += length;
    }
    out.data[out.size] = '\0';
    return out;
}

// --- Compiling -----------------------------------------------------------------------------------

static void add_compile_options(command *c, const settings *s, bool checked, const char *folder)
{
    add_words(c, "-x c -std=gnu17 -O1 -fPIC -S -fno-math-errno -fno-trapping-math"
                 " -fno-strict-aliasing -DBEL_CUDA_DOUBLE");
    add_word(c, copy_text(checked ? "-DBEL_HOOK_CHECKED=1" : "-DBEL_HOOK_CHECKED=0"));
    add_words(c, s->fuse ? "-ffp-contract=fast -fexpensive-optimizations" : "-ffp-contract=off");
#ifdef __x86_64__
    if (s->fuse && __builtin_cpu_supports("fma")) add_words(c, "-mfma");
#endif
    if (checked) {
        add_words(c, "-fsanitize=thread -fsanitize=alignment --param tsan-distinguish-volatile=0"
                     " --param tsan-instrument-func-entry-exit=0");
    }
    add_word(c, copy_text("-include"));
    add_word(c, copy_text(CUDA_DOUBLE_KERNEL_HOST));
    add_word(c, copy_text("-idirafter"));
    add_word(c, join(folder, "/headers"));
    add_word(c, copy_text("-o"));
    add_word(c, join(folder, "/compiled.s"));
    add_word(c, join(folder, "/source.cu"));
}

// Links compiled.s into module.so.
static bool link_module(const char *folder, bool checked)
{
    if (checked) {
        bytes compiled;
        if (!read_file(folder, "/compiled.s", &compiled)) return false;
        bytes renamed = rename_hooks(&compiled);
        bool ok = write_file(folder, "/compiled.s", renamed.data, renamed.size);
        free(compiled.data);
        free(renamed.data);
        if (!ok) return false;
    }
    command c;
    begin_command(&c);
    add_words(&c, "-shared -Wl,-z,defs -o");
    add_word(&c, join(folder, "/module.so"));
    add_word(&c, join(folder, "/compiled.s"));
    add_words(&c, "-lm");
    return run_command(&c, folder);
}

static void forget_results(program *p)
{
    free(p->log.data);
    free(p->cubin.data);
    p->log = p->cubin = (bytes){NULL, 0};
}

// Value of CUDA_DOUBLE_NVRTC, or NULL.
static const char *real_path(void)
{
    const char *path = getenv("CUDA_DOUBLE_NVRTC");
    return path != NULL && path[0] != '\0' ? path : NULL;
}

// Whether NVIDIA's NVRTC, if there is one, compiles the source too (real_nvrtc.c). Its messages
// are appended to the log.
static bool passes_real(const program *p, const char *folder, int option_count,
                        const char *const *options)
{
    if (real_path() == NULL) return true;
    size_t room = 1;
    for (int i = 0; i < p->header_count; i++)
        room += strlen(p->header_names[i]) + 1;
    char *names = need(calloc(room, 1)), *end = names;
    for (int i = 0; i < p->header_count; i++)
        end += snprintf(end, room - (size_t)(end - names), "%s\n", p->header_names[i]);
    bool written = write_file(folder, "/names", names, strlen(names));
    free(names);
    command c = {.count = 0};
    add_word(&c, copy_text(CUDA_DOUBLE_REAL_NVRTC));
    add_word(&c, copy_text(real_path()));
    add_word(&c, copy_text(folder));
    for (int i = 0; i < option_count; i++)
        add_word(&c, copy_text(options[i]));
    return run_command(&c, folder) && written;
}

static int compile_in(program *p, const char *folder, int option_count, const char *const *options)
{
    bool checked = checks_are_on();
    settings s;
    command c;
    begin_command(&c);
    if (!read_options(option_count, options, &c, &s)) {
        for (int i = 0; i < c.count; i++)
            free(c.words[i]);
        return INVALID_OPTION;
    }
    add_compile_options(&c, &s, checked, folder);
    bool ok = write_file(folder, "/source.cu", p->source, strlen(p->source)) &&
              write_file(folder, "/headers/.folder", "", 0);
    for (int i = 0; i < p->header_count; i++) {
        char *name = join("/headers/", p->header_names[i]);
        ok = ok && write_file(folder, name, p->headers[i], strlen(p->headers[i]));
        free(name);
    }
    ok = run_command(&c, folder) && ok;
    ok = ok && link_module(folder, checked);
    ok = ok && passes_real(p, folder, option_count, options);
    read_file(folder, "/log", &p->log);
    if (!ok) return COMPILATION;
    // NVRTC makes no cubin for a virtual architecture (compute_NUMBER) or without one.
    if (s.real_card && !read_file(folder, "/module.so", &p->cubin)) return INTERNAL_ERROR;
    return 0;
}

// --- The API -------------------------------------------------------------------------------------

// Belfry keeps compiled kernels by NVRTC's version, so each mode has one: with checks and
// without, each also with NVIDIA's NVRTC.
API(nvrtcVersion, (int *out_major, int *out_minor))
{
    *out_major = 12;
    *out_minor = (checks_are_on() ? 999 : 998) - (real_path() != NULL ? 2 : 0);
    return 0;
}

API(nvrtcCreateProgram, (void **out_program, const char *source, const char *name, int header_count,
                         const char *const *headers, const char *const *header_names))
{
    (void)name;
    if (out_program == NULL || source == NULL || header_count < 0) return INVALID_INPUT;
    program *p = need(calloc(1, sizeof *p));
    p->source = copy_text(source);
    p->header_count = header_count;
    p->headers = need(calloc((size_t)header_count + 1, sizeof *p->headers));
    p->header_names = need(calloc((size_t)header_count + 1, sizeof *p->header_names));
    for (int i = 0; i < header_count; i++) {
        p->headers[i] = copy_text(headers[i]);
        p->header_names[i] = copy_text(header_names[i]);
    }
    *out_program = p;
    return 0;
}

API(nvrtcDestroyProgram, (void **in_program))
{
    if (in_program == NULL || *in_program == NULL) return INVALID_PROGRAM;
    program *p = *in_program;
    forget_results(p);
    for (int i = 0; i < p->header_count; i++) {
        free(p->headers[i]);
        free(p->header_names[i]);
    }
    free(p->headers);
    free(p->header_names);
    free(p->source);
    free(p);
    *in_program = NULL;
    return 0;
}

API(nvrtcCompileProgram, (void *in_program, int option_count, const char *const *options))
{
    if (in_program == NULL) return INVALID_PROGRAM;
    const char *parent = getenv("TMPDIR");
    char *folder = join(parent != NULL && *parent != '\0' ? parent : "/tmp", "/cuda-double-XXXXXX");
    int result = INTERNAL_ERROR;
    forget_results(in_program);
    if (mkdtemp(folder) != NULL) {
        result = compile_in(in_program, folder, option_count, options);
        remove_folder(folder);
    }
    free(folder);
    return result;
}

API(nvrtcGetProgramLogSize, (void *in_program, size_t *out_size))
{
    if (in_program == NULL) return INVALID_PROGRAM;
    const program *p = in_program;
    *out_size = p->log.size + 1;
    return 0;
}

API(nvrtcGetProgramLog, (void *in_program, char *out_log))
{
    if (in_program == NULL) return INVALID_PROGRAM;
    const program *p = in_program;
    memcpy(out_log, p->log.data != NULL ? p->log.data : "", p->log.size + 1);
    return 0;
}

API(nvrtcGetCUBINSize, (void *in_program, size_t *out_size))
{
    if (in_program == NULL) return INVALID_PROGRAM;
    const program *p = in_program;
    *out_size = p->cubin.size;
    return 0;
}

API(nvrtcGetCUBIN, (void *in_program, char *out_cubin))
{
    if (in_program == NULL) return INVALID_PROGRAM;
    const program *p = in_program;
    if (p->cubin.data != NULL) memcpy(out_cubin, p->cubin.data, p->cubin.size);
    return 0;
}
