// Builds packages from their sources. The build uses a temporary folder under $TMPDIR, so that
// neither the sources' folder nor the model's ever holds an unfinished file. The result is renamed
// to its digest, so a second build gives the same file. No path of the build gets into it: the same
// sources have the same digest wherever they are.
//
// A package does not link to Belfry: it needs only the headers. They are in `include` of a folder
// above this program, installed or not.
#define _XOPEN_SOURCE 700 // realpath
#include "package/package_build.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/program.h"
#include "base/str.h"
#include "base/yaml.h"

enum { MOST_BUILD_SECS = 600, DIGEST_LENGTH = 32 };

static const char store_name[] = "packages";

// Words of a command line. It owns the texts.
typedef struct words {
    char **items; // NULL at the end
    size_t count, capacity;
} words;

static void add_word(words *w, char *owned)
{
    w->items = bel_xgrow(w->items, &w->capacity, w->count + 2, sizeof *w->items);
    w->items[w->count++] = owned;
    w->items[w->count] = NULL;
}

static void words_deinit(words *w)
{
    for (size_t i = 0; i < w->count; i++)
        bel_free(w->items[i]);
    bel_free(w->items);
    *w = (words){0};
}

static bel_status *run_words(words *w)
{
    bel_status *status = bel_program_run(w->items, MOST_BUILD_SECS);
    words_deinit(w);
    return status;
}

// --- Headers -------------------------------------------------------------------------------------

// Finds the nearest folder above this program with include/belfry/belfry.h; free with bel_free.
static bel_status *find_headers(char **out_include)
{
    char *program = bel_linux_program();
    char *path = bel_xstrdup(program != NULL ? program : "/");
    bel_free(program);
    for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
        *slash = '\0';
        char *include = bel_path_join(path[0] != '\0' ? path : "/", "include");
        char *header = bel_path_join(include, "belfry/belfry.h");
        bool found = bel_file_exists(header);
        bel_free(header);
        if (found) {
            bel_free(path);
            *out_include = include;
            return NULL;
        }
        bel_free(include);
    }
    bel_free(path);
    return BEL_ERR(BEL_NOT_FOUND, "there is no include/belfry/belfry.h above this program, with "
                                  "which a package could be built");
}

// --- package.yaml --------------------------------------------------------------------------------

typedef struct recipe {
    const char *folder;
    char *name;                       // module name, without ".so"
    words sources, cflags, libraries; // below the folder; in the compiler's form
    bool has_cmake;
} recipe;

static void recipe_deinit(recipe *r)
{
    words_deinit(&r->sources);
    words_deinit(&r->cflags);
    words_deinit(&r->libraries);
    bel_free(r->name);
}

static bel_status *read_list(const bel_yaml *yaml, const bel_yaml_node *node, words *out)
{
    if (node->kind != BEL_YAML_SEQUENCE) {
        return bel_yaml_error(yaml, node, "expected a list of texts");
    }
    for (size_t i = 0; i < node->count; i++) {
        const bel_yaml_node *item = node->values[i];
        if (item->kind != BEL_YAML_SCALAR || item->text[0] == '\0') {
            return bel_yaml_error(yaml, item, "expected a text");
        }
        add_word(out, bel_xstrdup(item->text));
    }
    return NULL;
}

static bel_status *read_key(const bel_yaml *yaml, const bel_yaml_node *key,
                            const bel_yaml_node *value, recipe *r)
{
    if (strcmp(key->text, "sources") == 0) return read_list(yaml, value, &r->sources);
    if (strcmp(key->text, "cflags") == 0) return read_list(yaml, value, &r->cflags);
    if (strcmp(key->text, "libraries") == 0) return read_list(yaml, value, &r->libraries);
    if (strcmp(key->text, "name") != 0) {
        return bel_yaml_error(yaml, key,
                              "unknown key %s; expected name, sources, cflags or "
                              "libraries",
                              key->text);
    }
    if (value->kind != BEL_YAML_SCALAR || value->text[0] == '\0' ||
        strchr(value->text, '/') != NULL) {
        return bel_yaml_error(yaml, value, "expected the name of the package");
    }
    bel_free(r->name);
    r->name = bel_xstrdup(value->text);
    return NULL;
}

static bel_status *read_recipe_file(const char *path, recipe *r)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_read(path, &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    bel_status *status = NULL;
    if (root != NULL && root->kind != BEL_YAML_MAPPING) {
        status = bel_yaml_error(yaml, root, "expected a mapping");
    }
    for (size_t i = 0; status == NULL && root != NULL && i < root->count; i++)
        status = read_key(yaml, root->keys[i], root->values[i], r);
    bel_yaml_destroy(yaml);
    return status;
}

// Lists all *.c of the folder, in the order of their names.
static bel_status *list_sources(recipe *r)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(r->folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        bool is_source = length > 2 && strcmp(names[i] + length - 2, ".c") == 0;
        if (is_source) add_word(&r->sources, bel_xstrdup(names[i]));
    }
    bel_dir_names_free(names, count);
    if (r->sources.count > 0) return NULL;
    return BEL_ERR(BEL_NOT_FOUND,
                   "%s has neither package.yaml nor CMakeLists.txt nor any *.c: there is nothing "
                   "to build; hint: a module of Python is FOLDER/NAME.py, and local train and "
                   "jobs submit run it by --module_name FOLDER.NAME",
                   r->folder);
}

// Returns "trainer" for "trainer/", and for "." its real name. Free with bel_free.
static char *folder_name(const char *folder)
{
    char path[PATH_MAX];
    const char *slash = realpath(folder, path) != NULL ? strrchr(path, '/') : NULL;
    return bel_xstrdup(slash != NULL && slash[1] != '\0' ? slash + 1 : "package");
}

// A module is the folder's name and the name of the result, or only the first.
static bel_status *take_module(recipe *r, const char *module)
{
    char *own = folder_name(r->folder);
    size_t length = strlen(own);
    bool ours = strncmp(module, own, length) == 0 && (module[length] == '.' || !module[length]);
    const char *last = module + length + (module[length] == '.');
    bel_status *status = NULL;
    if (!ours || strchr(last, '.') != NULL || strchr(last, '/') != NULL) {
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "--module_name %s: the package in %s has modules %s.NAME",
                    module, r->folder, own);
    } else if (last[0] != '\0') {
        bel_free(r->name);
        r->name = bel_xstrdup(last);
    }
    bel_free(own);
    return status;
}

static bel_status *read_recipe(const char *module, recipe *r)
{
    struct stat info;
    if (stat(r->folder, &info) != 0) return bel_file_error(errno, "open", r->folder);
    if (!S_ISDIR(info.st_mode)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package_path %s: expected a folder", r->folder);
    }
    r->name = folder_name(r->folder);
    char *yaml = bel_path_join(r->folder, "package.yaml");
    char *cmake = bel_path_join(r->folder, "CMakeLists.txt");
    bool has_yaml = bel_file_exists(yaml);
    r->has_cmake = !has_yaml && bel_file_exists(cmake);
    bel_status *status = has_yaml ? read_recipe_file(yaml, r) : NULL;
    if (status == NULL && module != NULL) status = take_module(r, module);
    if (status == NULL && !r->has_cmake && r->sources.count == 0) status = list_sources(r);
    bel_free(cmake);
    bel_free(yaml);
    return status;
}

// --- Building ------------------------------------------------------------------------------------

// Appends flags that keep the folders of the build out of the object. If one folder is inside
// another, the compiler applies the later flag.
static void add_path_flags(words *w, const recipe *r, const char *include, const char *build)
{
    char cwd[PATH_MAX], folder[PATH_MAX];
    if (getcwd(cwd, sizeof cwd) != NULL) add_word(w, bel_strf("-ffile-prefix-map=%s=.", cwd));
    add_word(w, bel_strf("-ffile-prefix-map=%s=.", build));
    if (realpath(r->folder, folder) != NULL)
        add_word(w, bel_strf("-ffile-prefix-map=%s=.", folder));
    add_word(w, bel_strf("-ffile-prefix-map=%s=include", include));
}

// Returns the absolute path of a source, which those flags shorten. Free with bel_free.
static char *source_path(const recipe *r, const char *name)
{
    char folder[PATH_MAX];
    return bel_path_join(realpath(r->folder, folder) != NULL ? folder : r->folder, name);
}

// Runs the compiler once: $CC, by default cc.
static bel_status *recipe_compile(const recipe *r, const char *include, const char *build,
                                  const char *out)
{
    const char *compiler = getenv("CC");
    words w = {0};
    add_word(&w, bel_xstrdup(compiler != NULL && compiler[0] != '\0' ? compiler : "cc"));
    static const char *const usual[] = {
        "-shared", "-fPIC", "-O2", "-g", "-Wall", "-fvisibility=hidden", "-ffp-contract=off"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        add_word(&w, bel_xstrdup(usual[i]));
    add_path_flags(&w, r, include, build);
    add_word(&w, bel_strf("-I%s", include));
    for (size_t i = 0; i < r->cflags.count; i++)
        add_word(&w, bel_xstrdup(r->cflags.items[i]));
    for (size_t i = 0; i < r->sources.count; i++)
        add_word(&w, source_path(r, r->sources.items[i]));
    add_word(&w, bel_xstrdup("-o"));
    add_word(&w, bel_xstrdup(out));
    for (size_t i = 0; i < r->libraries.count; i++)
        add_word(&w, bel_strf("-l%s", r->libraries.items[i]));
    return run_words(&w);
}

// Makes -DNAME= with the value in the user's environment and the flags above.
static char *cmake_flags(const char *name, const char *variable, const words *paths)
{
    const char *own = getenv(variable);
    bel_str text = {0};
    bel_str_printf(&text, "-D%s=%s", name, own != NULL ? own : "");
    for (size_t i = 0; i < paths->count; i++)
        bel_str_printf(&text, " \"%s\"", paths->items[i]);
    return text.text;
}

static bel_status *run_cmake(const recipe *r, const char *include, const char *build)
{
    words w = {0};
    add_word(&w, bel_xstrdup("cmake"));
    add_word(&w, bel_xstrdup("-S"));
    add_word(&w, bel_xstrdup(r->folder));
    add_word(&w, bel_xstrdup("-B"));
    add_word(&w, bel_xstrdup(build));
    add_word(&w, bel_xstrdup("-DCMAKE_BUILD_TYPE=Release"));
    add_word(&w, bel_strf("-DBELFRY_INCLUDE_DIR=%s", include));
    words paths = {0};
    add_path_flags(&paths, r, include, build);
    add_word(&w, cmake_flags("CMAKE_C_FLAGS", "CFLAGS", &paths));
    add_word(&w, cmake_flags("CMAKE_CXX_FLAGS", "CXXFLAGS", &paths));
    words_deinit(&paths);
    add_word(&w, bel_xstrdup("--log-level=WARNING"));
    BEL_TRY(run_words(&w));
    add_word(&w, bel_xstrdup("cmake"));
    add_word(&w, bel_xstrdup("--build"));
    add_word(&w, bel_xstrdup(build));
    add_word(&w, bel_xstrdup("--target"));
    add_word(&w, bel_xstrdup(r->name));
    return run_words(&w);
}

// Builds NAME.so in the build folder.
static bel_status *build_in(const recipe *r, const char *include, const char *build,
                            const char *out)
{
    if (!r->has_cmake) return recipe_compile(r, include, build, out);
    BEL_TRY(run_cmake(r, include, build));
    if (bel_file_exists(out)) return NULL;
    return BEL_ERR(BEL_NOT_FOUND,
                   "the CMakeLists.txt of %s has made no %s.so in its build folder; hint: "
                   "add_library(%s MODULE …) with an empty PREFIX",
                   r->folder, r->name, r->name);
}

// --- The store -----------------------------------------------------------------------------------

static bel_status *digest_of(const char *path, char text[DIGEST_LENGTH + 1])
{
    char *bytes;
    size_t size;
    BEL_TRY(bel_file_read(path, &bytes, &size));
    bel_hash128_text(bel_hash128_of(bytes, size, 0), text);
    bel_free(bytes);
    return NULL;
}

static bel_status *copy_file(const char *from, const char *to)
{
    char *bytes;
    size_t size;
    BEL_TRY(bel_file_read(from, &bytes, &size));
    bel_status *status = bel_file_write_atomic(to, bytes, size);
    bel_free(bytes);
    return status;
}

static bel_status *store(const char *built, const char *name, const char *model_dir,
                         char **out_path)
{
    char digest[DIGEST_LENGTH + 1];
    BEL_TRY(digest_of(built, digest));
    char *all = bel_path_join(model_dir, store_name);
    char *folder = bel_path_join(all, digest);
    char *file = bel_strf("%s/%s.so", folder, name);
    bel_status *status = bel_dir_create(folder);
    if (status == NULL && !bel_file_exists(file)) status = copy_file(built, file);
    if (status == NULL) *out_path = bel_absolute_path(file);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "package %s, digest %s, is %s", name, digest, file);
    }
    bel_free(file);
    bel_free(folder);
    bel_free(all);
    return status;
}

// Returns the start of the digest in "…/packages/0123…cdef/NAME.so"; NULL: the path is not in a
// store.
static const char *digest_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t before = sizeof store_name; // with the slash after it
    if (slash == NULL || (size_t)(slash - path) < DIGEST_LENGTH + before) return NULL;
    const char *digest = slash - DIGEST_LENGTH;
    bool here = digest[-1] == '/' &&
                strncmp(digest - before, store_name, sizeof store_name - 1) == 0 &&
                strspn(digest, "0123456789abcdef") == DIGEST_LENGTH;
    return here ? digest : NULL;
}

bel_status *bel_package_check_store(const char *path)
{
    char found[DIGEST_LENGTH + 1];
    const char *expected = digest_in(path);
    if (expected == NULL) return NULL;
    BEL_TRY(digest_of(path, found));
    if (strncmp(found, expected, DIGEST_LENGTH) == 0) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "--package: %s has digest %s by now, so it is not what the job was started with",
                   path, found);
}

// Returns the digest and file name in job.yaml. NULL: not of a store. Free with bel_free.
static char *name_in_store(const bel_yaml *yaml)
{
    const bel_yaml_node *root = bel_yaml_root(yaml);
    bool is_mapping = root != NULL && root->kind == BEL_YAML_MAPPING;
    const bel_yaml_node *package = is_mapping ? bel_yaml_member(root, "package") : NULL;
    bool is_text = package != NULL && package->kind == BEL_YAML_SCALAR;
    const char *digest = is_text ? digest_in(package->text) : NULL;
    return digest != NULL ? bel_xstrdup(digest) : NULL;
}

bel_status *bel_package_kept(const char *model_dir, char **out_path)
{
    bel_yaml *yaml;
    char *job = bel_path_join(model_dir, "job.yaml");
    bool began = bel_file_exists(job);
    *out_path = NULL;
    bel_status *status = began ? bel_yaml_read(job, &yaml) : NULL;
    bel_free(job);
    if (status != NULL || !began) return status;
    char *name = name_in_store(yaml);
    bel_yaml_destroy(yaml);
    if (name == NULL) return NULL;
    char *all = bel_path_join(model_dir, store_name);
    char *path = bel_path_join(all, name);
    if (bel_file_exists(path)) *out_path = bel_absolute_path(path);
    bel_free(path);
    bel_free(all);
    bel_free(name);
    return NULL;
}

bel_status *bel_package_build(const char *folder, const char *module, const char *model_dir,
                              char **out_path)
{
    recipe r = {.folder = folder};
    char *include = NULL, *build = NULL, *out = NULL;
    bel_status *status;
    BEL_TRY_GOTO(status, done, read_recipe(module, &r));
    BEL_TRY_GOTO(status, done, find_headers(&include));
    const char *base = getenv("TMPDIR");
    build = bel_path_join(base != NULL && base[0] != '\0' ? base : "/tmp", "belfry-build-XXXXXX");
    if (mkdtemp(build) == NULL) {
        status = bel_file_error(errno, "create folder", build);
        goto done;
    }
    out = bel_strf("%s/%s.so", build, r.name);
    status = build_in(&r, include, build, out);
    if (status == NULL) status = store(out, r.name, model_dir, out_path);
    bel_status_ignore(bel_dir_remove(build)); // a temporary folder
done:
    bel_free(out);
    bel_free(build);
    bel_free(include);
    recipe_deinit(&r);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "package %s", folder);
}
