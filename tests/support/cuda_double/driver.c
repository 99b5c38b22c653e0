// Devices, primary contexts, errors, and the end of the process.
//
// A context is a pointer to its device. As with CUDA, a forked child of a process that called
// cuInit can call nothing. So Belfry's own rule (no fork after CUDA has started) is tested.
#include "double.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

settings config;
device devices[MOST_DEVICES];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local device *current; // the thread's context lives if retained > 0
static pid_t begun_by;                // 0: cuInit was not called
static object *objects;
static unsigned numbers[KINDS];

static const char *const kind_names[KINDS] = {"stream", "event", "module",
                                              "kernel", "graph", "graph for launching"};

void die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char text[2048];
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuda double: %s\n", text);
    abort();
}

void *grow(void *memory, size_t bytes)
{
    void *result = realloc(memory, bytes == 0 ? 1 : bytes);
    if (result == NULL) die("no memory");
    return result;
}

// --- Calls ---------------------------------------------------------------------------------------

int enter_without_context(void)
{
    pthread_mutex_lock(&mutex);
    return begun_by != 0 && begun_by == getpid() ? SUCCESS : ERROR_NOT_INITIALIZED;
}

int enter(device **out_current)
{
    int error = enter_without_context();
    if (error != SUCCESS) return error;
    if (current == NULL || current->retained == 0) return ERROR_INVALID_CONTEXT;
    *out_current = current;
    return current->lost ? ERROR_LAUNCH_FAILED : SUCCESS;
}

int leave(int error)
{
    memory_close();
    pthread_mutex_unlock(&mutex);
    return error;
}

device *current_device(void)
{
    return current;
}

// --- Objects -------------------------------------------------------------------------------------

void *object_create(kind what, size_t bytes, device *owner)
{
    object *o = grow(NULL, bytes);
    memset(o, 0, bytes);
    *o = (object){what, true, ++numbers[what], owner, objects, false};
    objects = o;
    return o;
}

void *object_of(void *handle, kind what, const device *on, const char *call)
{
    const char *name = kind_names[what];
    if (handle == NULL && what == STREAM) die("%s: the default stream is not supported", call);
    if (handle == NULL) die("%s: the %s is NULL", call, name);
    object *o = handle;
    if (o->what != what) die("%s: a handle that is of no %s", call, name);
    if (!o->alive) die("%s: %s %u was destroyed", call, name, o->number);
    if (on != NULL && o->owner != on)
        die("%s: %s %u belongs to device %d, the current context to device %d", call, name,
            o->number, o->owner->index, on->index);
    return o;
}

void object_kill(object *o)
{
    o->alive = false;
}

// Kernels are parts of their modules.
static int alive_of(const device *d, kind what)
{
    int count = 0;
    for (const object *o = objects; o != NULL; o = o->next)
        if (o->alive && o->what == what && o->what != FUNCTION && !o->of_library && o->owner == d)
            count++;
    return count;
}

__attribute__((destructor)) static void look_for_leaks(void)
{
    if (begun_by != getpid() || !config.leaks) return;
    bool found = false;
    for (int i = 0; i < config.device_count; i++) {
        const device *d = &devices[i];
        if (d->lost) continue; // its objects cannot be released
        for (int what = 0; what < KINDS; what++) {
            int count = alive_of(d, (kind)what);
            if (count == 0) continue;
            fprintf(stderr, "cuda double: device %d: %d of kind %s left\n", i, count,
                    kind_names[what]);
            found = true;
        }
        int allocations = memory_alive(d);
        if (allocations > 0)
            fprintf(stderr, "cuda double: device %d: %d of kind memory left\n", i, allocations);
        if (d->left_behind > 0)
            fprintf(stderr, "cuda double: device %d: %d left in a context that was released\n", i,
                    d->left_behind);
        found = found || allocations > 0 || d->left_behind > 0;
    }
    if (found) _exit(1);
}

// --- Start ---------------------------------------------------------------------------------------

static long long number_from(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return otherwise;
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*end != '\0' || number < 0) die("%s=%s is no number", name, text);
    return number;
}

// "device:count"
static void read_place(const char *name, int *out_device, int64_t *out_after)
{
    const char *text = getenv(name);
    long long after = 0;
    *out_device = -1;
    if (text == NULL || *text == '\0') return;
    if (sscanf(text, "%d:%lld", out_device, &after) != 2)
        die("%s=%s is no device:count", name, text);
    *out_after = after;
}

static void read_settings(void)
{
    long long count = number_from("CUDA_DOUBLE_DEVICES", 2);
    config = (settings){
        .device_count = count < MOST_DEVICES ? (int)count : MOST_DEVICES,
        .memory = (size_t)number_from("CUDA_DOUBLE_MEMORY", 256 << 20),
        .checks = number_from("CUDA_DOUBLE_CHECKS", 1) != 0,
        .leaks = number_from("CUDA_DOUBLE_LEAKS", 0) != 0,
        .seed = (uint64_t)number_from("CUDA_DOUBLE_SEED", 1),
    };
    read_place("CUDA_DOUBLE_LOSE", &config.lose_device, &config.lose_after);
    read_place("CUDA_DOUBLE_HANG", &config.hang_device, &config.hang_after);
    read_place("CUDA_DOUBLE_FLIP", &config.flip_device, &config.flip_after);
}

API(cuInit, (unsigned flags))
{
    pthread_mutex_lock(&mutex);
    int error = flags != 0 ? ERROR_INVALID_VALUE : SUCCESS;
    if (begun_by != 0 && begun_by != getpid()) {
        error = ERROR_NOT_INITIALIZED;
    } else if (error == SUCCESS && begun_by == 0) {
        read_settings();
        for (int i = 0; i < MOST_DEVICES; i++)
            devices[i].index = i;
        if (config.device_count == 0)
            error = ERROR_NO_DEVICE;
        else
            begun_by = getpid();
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

API(cuDriverGetVersion, (int *out_version))
{
    *out_version = 13000;
    return SUCCESS;
}

API(cuGetErrorName, (int error, const char **out_name))
{
#define ERROR_NAME(name, number, text)                                                             \
    if (error == number) {                                                                         \
        *out_name = "CUDA_" #name;                                                                 \
        return SUCCESS;                                                                            \
    }
    ERRORS(ERROR_NAME)
    *out_name = NULL;
    return ERROR_INVALID_VALUE;
}

API(cuGetErrorString, (int error, const char **out_text))
{
#define ERROR_TEXT(name, number, text)                                                             \
    if (error == number) {                                                                         \
        *out_text = text;                                                                          \
        return SUCCESS;                                                                            \
    }
    ERRORS(ERROR_TEXT)
    *out_text = NULL;
    return ERROR_INVALID_VALUE;
}

// --- Devices -------------------------------------------------------------------------------------

static int enter_for_device(int index)
{
    int error = enter_without_context();
    if (error == SUCCESS && (index < 0 || index >= config.device_count))
        error = ERROR_INVALID_DEVICE;
    return error;
}

API(cuDeviceGetCount, (int *out_count))
{
    int error = enter_without_context();
    if (error == SUCCESS) *out_count = config.device_count;
    return leave(error);
}

API(cuDeviceGet, (int *out_device, int index))
{
    int error = enter_for_device(index);
    if (error == SUCCESS) *out_device = index;
    return leave(error);
}

API(cuDeviceGetName, (char *out_name, int size, int index))
{
    int error = enter_for_device(index);
    if (error == SUCCESS) snprintf(out_name, (size_t)size, "CUDA double %d", index);
    return leave(error);
}

API(cuDeviceTotalMem_v2, (size_t * out_bytes, int index))
{
    int error = enter_for_device(index);
    if (error == SUCCESS) *out_bytes = config.memory;
    return leave(error);
}

// The attributes in use, with their numbers in CUDA's reference.
API(cuDeviceGetAttribute, (int *out_value, int attribute, int index))
{
    static const struct {
        int attribute, value;
    } values[] = {
        {1, 1024},       // threads in a block
        {2, 1024},       // block's x
        {3, 1024},       // block's y
        {4, 64},         // block's z
        {5, 2147483647}, // grid's x
        {6, 65535},      // grid's y
        {7, 65535},      // grid's z
        {8, 49152},      // shared memory of a block
        {10, 32},        // threads in a warp
        {16, 4},         // multiprocessors
        {39, 2048},      // threads in a multiprocessor
        {41, 1},         // host and device share one address space
        {75, 9},         // compute capability
        {76, 0},
    };
    int error = enter_for_device(index);
    if (error != SUCCESS) return leave(error);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i].attribute != attribute) continue;
        *out_value = values[i].value;
        return leave(SUCCESS);
    }
    die("cuDeviceGetAttribute: attribute %d is not in the table of driver.c", attribute);
}

API(cuDeviceGetPCIBusId, (char *out_id, int size, int index))
{
    int error = enter_for_device(index);
    if (error == SUCCESS) snprintf(out_id, (size_t)size, "0000:%02x:00.0", (unsigned)index);
    return leave(error);
}

// --- Contexts ------------------------------------------------------------------------------------

API(cuDevicePrimaryCtxRetain, (void **out_context, int index))
{
    int error = enter_for_device(index);
    if (error != SUCCESS) return leave(error);
    device *d = &devices[index];
    if (d->lost) return leave(ERROR_LAUNCH_FAILED);
    if (d->retained++ == 0) memory_begin(d);
    *out_context = d;
    return leave(SUCCESS);
}

// The last release ends every object in the context. Objects that their owner did not end are
// leaks.
API(cuDevicePrimaryCtxRelease_v2, (int index))
{
    int error = enter_for_device(index);
    if (error != SUCCESS) return leave(error);
    device *d = &devices[index];
    if (d->retained == 0) return leave(ERROR_INVALID_CONTEXT);
    if (--d->retained == 0) {
        streams_end(d);
        for (object *o = objects; o != NULL; o = o->next) {
            if (o->owner != d || !o->alive) continue;
            if (o->what != FUNCTION && !o->of_library) d->left_behind++;
            object_kill(o);
        }
        d->left_behind += memory_alive(d);
        memory_end(d);
    }
    return leave(d->lost ? ERROR_LAUNCH_FAILED : SUCCESS);
}

API(cuCtxSetCurrent, (void *context))
{
    int error = enter_without_context();
    if (error != SUCCESS) return leave(error);
    device *d = context;
    if (d != NULL && (d < devices || d >= devices + config.device_count || d->retained == 0))
        return leave(ERROR_INVALID_CONTEXT);
    current = d;
    return leave(SUCCESS);
}

const device *device_of_context(void *context, const char *call)
{
    const device *d = context;
    if (d == NULL || d < devices || d >= devices + config.device_count || d->retained == 0)
        die("%s: %p is no context that lives", call, context);
    return d;
}

API(cuDeviceCanAccessPeer, (int *out_possible, int index, int peer))
{
    int error = enter_for_device(index);
    if (error == SUCCESS && (peer < 0 || peer >= config.device_count)) error = ERROR_INVALID_DEVICE;
    if (error == SUCCESS) *out_possible = index != peer;
    return leave(error);
}

// In the stand-in, kernels access only their device's memory, with peer access or without.
API(cuCtxEnablePeerAccess, (void *context, unsigned flags))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    const device *peer = device_of_context(context, __func__);
    if (peer == d || flags != 0) return leave(ERROR_INVALID_VALUE);
    if ((d->peers >> peer->index & 1) != 0) return leave(ERROR_PEER_ACCESS_ALREADY_ENABLED);
    d->peers |= 1u << peer->index;
    return leave(SUCCESS);
}

// For NVIDIA's other libraries, which work in their caller's current context.
API(cuCtxGetCurrent, (void **out_context))
{
    int error = enter_without_context();
    if (error == SUCCESS) *out_context = current != NULL && current->retained > 0 ? current : NULL;
    return leave(error);
}
