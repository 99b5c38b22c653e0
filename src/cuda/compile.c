// Compilation of kernels from sources. NVRTC compiles a source for exactly this GPU, once. The
// result is kept in memory as a module. It is also kept on disk under a hash of all its inputs (the
// source, the texts it may include, the compute capability, NVRTC's version), so that the next
// process starts at once. A torn or foreign file on disk is compiled again and replaced.
//
// Multiplications and additions are never fused automatically (--fmad=false), division and roots
// are correctly rounded and subnormal numbers are kept: the CPU's bits (docs/determinism.md).
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/texts.h"

static const char *const flags[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                    "--ftz=false", "-default-device"};
enum { FLAG_COUNT = sizeof flags / sizeof flags[0] };

// C headers that sources include: cuda/kernels/standard.h replaces each.
static const char *const standard[] = {"math.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"};
enum { STANDARD_COUNT = sizeof standard / sizeof standard[0] };

static bel_status *compile_error(const bel_cuda_api *api, void *program, const char *name)
{
    size_t size = 0;
    if (api->nvrtc_log_size(program, &size) != 0) size = 0;
    char *log = bel_xcalloc(size + 1, 1);
    if (size > 0 && api->nvrtc_log(program, log) != 0) log[0] = '\0';
    bel_status *status = BEL_ERR(BEL_INTERNAL, "NVRTC cannot compile %s: %.1500s", name, log);
    bel_free(log);
    return status;
}

static bel_status *run_nvrtc(const bel_cuda_api *api, void *program, const char *name,
                             int capability, char **out_image, size_t *out_bytes)
{
    char architecture[48];
    const char *options[FLAG_COUNT + 1];
    bel_snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", capability);
    memcpy(options, flags, sizeof flags);
    options[FLAG_COUNT] = architecture;
    if (api->nvrtc_compile(program, FLAG_COUNT + 1, options) != 0)
        return compile_error(api, program, name);
    size_t bytes = 0;
    if (api->nvrtc_cubin_size(program, &bytes) != 0 || bytes == 0)
        return BEL_ERR(BEL_INTERNAL, "NVRTC makes no code of %s", name);
    char *image = bel_xmalloc(bytes);
    if (api->nvrtc_cubin(program, image) != 0) {
        bel_free(image);
        return BEL_ERR(BEL_INTERNAL, "NVRTC does not give the code of %s", name);
    }
    *out_image = image;
    *out_bytes = bytes;
    return NULL;
}

bel_status *bel_cuda_compile(const bel_cuda_api *api, const char *name, const char *source,
                             int capability, char **out_image, size_t *out_bytes)
{
    int count = bel_cuda_text_count + STANDARD_COUNT;
    const char **names = bel_xcalloc((size_t)count, sizeof *names);
    const char **texts = bel_xcalloc((size_t)count, sizeof *texts);
    for (int i = 0; i < bel_cuda_text_count; i++) {
        names[i] = bel_cuda_texts[i].name;
        texts[i] = bel_cuda_texts[i].text;
    }
    for (int i = 0; i < STANDARD_COUNT; i++) {
        names[bel_cuda_text_count + i] = standard[i];
        texts[bel_cuda_text_count + i] = bel_cuda_text_of("cuda/kernels/standard.h");
    }
    void *program;
    bel_status *status = NULL;
    if (api->nvrtc_create(&program, source, name, count, texts, names) != 0)
        status = BEL_ERR(BEL_INTERNAL, "NVRTC cannot read %s", name);
    bel_free(names);
    bel_free(texts);
    if (status != NULL) return status;
    status = run_nvrtc(api, program, name, capability, out_image, out_bytes);
    api->nvrtc_destroy(&program);
    return status;
}

// --- On disk -------------------------------------------------------------------------------------

// Head of a file of the cache.
typedef struct file_head {
    char magic[8];
    uint64_t bytes;
    uint32_t crc, zero;
} file_head;

static const char magic[8] = "belcubin";

static bel_hash128 hash_of(const bel_cuda_device *device, const char *source)
{
    bel_hasher *hasher = bel_hasher_create();
    int numbers[3] = {device->card.major, device->card.minor, device->api->nvrtc};
    bel_hasher_update(hasher, numbers, sizeof numbers);
    for (int i = 0; i < FLAG_COUNT; i++)
        bel_hasher_update(hasher, flags[i], strlen(flags[i]) + 1);
    for (int i = 0; i < bel_cuda_text_count; i++)
        bel_hasher_update(hasher, bel_cuda_texts[i].text, strlen(bel_cuda_texts[i].text) + 1);
    bel_hasher_update(hasher, source, strlen(source));
    bel_hash128 hash = bel_hasher_finish(hasher);
    bel_hasher_destroy(hasher);
    return hash;
}

// Path of a file of the cache; NULL: the environment has no folder for caches.
static char *path_of(bel_hash128 hash)
{
    char *folder = bel_cache_folder();
    if (folder == NULL) return NULL;
    char text[33];
    char *path = bel_strf("%s/cuda/%s.cubin", folder, bel_hash128_text(hash, text));
    bel_free(folder);
    return path;
}

// Checksum of the hash and the code, so a file under the wrong name counts as torn, too.
static uint32_t checksum(bel_hash128 hash, const char *image, size_t bytes)
{
    return bel_crc32c(bel_crc32c(0, &hash, sizeof hash), image, bytes);
}

// Reads a file of the cache; NULL: absent or damaged. Free with bel_free; the code starts after the
// head.
static char *read_image(bel_hash128 hash, const char *path)
{
    char *data;
    size_t size;
    file_head head;
    bel_status *status = bel_file_read(path, &data, &size);
    if (status != NULL) {
        bel_status_ignore(status); // compiled again
        return NULL;
    }
    bool whole = size >= sizeof head;
    if (whole) memcpy(&head, data, sizeof head);
    whole = whole && memcmp(head.magic, magic, sizeof magic) == 0 &&
            head.bytes == size - sizeof head &&
            head.crc == checksum(hash, data + sizeof head, size - sizeof head);
    if (whole) return data;
    bel_free(data);
    return NULL;
}

// Writes a file of the cache. On failure the source is compiled again the next time.
static void write_image(bel_hash128 hash, const char *path, const char *image, size_t bytes)
{
    file_head head = {.bytes = bytes, .crc = checksum(hash, image, bytes)};
    memcpy(head.magic, magic, sizeof magic);
    char *data = bel_xmalloc(sizeof head + bytes), *folder = bel_xstrdup(path);
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, image, bytes);
    *strrchr(folder, '/') = '\0';
    bel_status *status = bel_dir_create(folder);
    if (status == NULL) status = bel_file_replace(path, data, sizeof head + bytes);
    bel_status_ignore(status); // compiled again the next time
    bel_free(folder);
    bel_free(data);
}

// --- Modules -------------------------------------------------------------------------------------

// A process compiles one source at a time, so several equal GPUs compile it once.
static pthread_mutex_t compile_mutex = PTHREAD_MUTEX_INITIALIZER;

static bel_status *compile_and_load(bel_cuda_device *device, const char *name, const char *source,
                                    bel_hash128 hash, const char *path, void **out_handle)
{
    char *kept = path != NULL ? read_image(hash, path) : NULL;
    bool loaded =
        kept != NULL && device->api->module_load(out_handle, kept + sizeof(file_head)) == 0;
    bel_free(kept);
    if (loaded) return NULL;
    char *image;
    size_t bytes;
    int capability = device->card.major * 10 + device->card.minor;
    BEL_TRY(bel_cuda_compile(device->api, name, source, capability, &image, &bytes));
    bel_status *status =
        bel_cuda_status(device->api->module_load(out_handle, image), "load kernels");
    if (status == NULL && path != NULL) write_image(hash, path, image, bytes);
    bel_free(image);
    return status;
}

static bel_status *compile_load(bel_cuda_device *device, const char *name, const char *source,
                                bel_hash128 hash, void **out_handle)
{
    char *path = path_of(hash);
    pthread_mutex_lock(&compile_mutex);
    bel_status *status = compile_and_load(device, name, source, hash, path, out_handle);
    pthread_mutex_unlock(&compile_mutex);
    bel_free(path);
    return status;
}

bel_status *bel_cuda_kernel(bel_cuda_device *device, const char *name, const char *source,
                            const char *kernel, void **out_function)
{
    BEL_TRY(bel_cuda_enter(device));
    bel_hash128 hash = hash_of(device, source);
    bel_status *status = NULL;
    pthread_mutex_lock(&device->mutex);
    bel_cuda_module *module = device->modules;
    while (module != NULL && (module->source.low != hash.low || module->source.high != hash.high))
        module = module->next;
    if (module == NULL) {
        void *handle;
        status = compile_load(device, name, source, hash, &handle);
        if (status == NULL) {
            module = bel_xcalloc(1, sizeof *module);
            *module = (bel_cuda_module){device->modules, hash, handle};
            device->modules = module;
        }
    }
    pthread_mutex_unlock(&device->mutex);
    if (status != NULL) return status;
    return bel_cuda_status(device->api->module_function(out_function, module->handle, kernel),
                           "find a kernel");
}
