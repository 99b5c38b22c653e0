// GPUs as devices. A device is created on first use and kept, with the GPU's primary context: a
// context takes a second and some hundred MB to create, and the end of the process releases it.
// The table of devices is under one mutex.
#include "cuda/device.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"

static pthread_mutex_t devices_mutex = PTHREAD_MUTEX_INITIALIZER;
static bel_cuda_device *devices[BEL_CUDA_MOST_CARDS];

// --- Memory --------------------------------------------------------------------------------------

static bel_cuda_device *of(bel_device *device)
{
    return (bel_cuda_device *)device;
}

// Addresses on a GPU, stored as pointers that the process never dereferences.
static void *as_pointer(uint64_t address)
{
    void *pointer;
    uintptr_t bits = (uintptr_t)address;
    memcpy(&pointer, &bits, sizeof pointer);
    return pointer;
}

// Counts the bytes as taken, unless they exceed the limit. A refused request must not block another
// tower's concurrent one.
static bel_status *cuda_device_take(bel_cuda_device *d, size_t bytes, const char *what)
{
    size_t limit = atomic_load(&d->device.memory_limit), before = atomic_load(&d->taken);
    while (limit == 0 || (before <= limit && bytes <= limit - before))
        if (atomic_compare_exchange_weak(&d->taken, &before, before + bytes)) return NULL;
    char wanted_text[32], taken_text[32], limit_text[32];
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%s: %s need %s, but of %s, the memory_limit, %s are taken", d->device.name,
                   what, bel_bytes_text(bytes, wanted_text), bel_bytes_text(limit, limit_text),
                   bel_bytes_text(before, taken_text));
}

static bel_status *device_allocate(bel_device *device, size_t bytes, const char *what,
                                   bel_device_memory *out_memory)
{
    bel_cuda_device *d = of(device);
    BEL_TRY(bel_cuda_enter(d));
    BEL_TRY(cuda_device_take(d, bytes, what));
    uint64_t address;
    int error = d->api->allocate(&address, bytes > 0 ? bytes : 1);
    if (error != 0) atomic_fetch_sub(&d->taken, bytes);
    if (error == BEL_CUDA_OUT_OF_MEMORY) {
        size_t left = 0, all = 0;
        char wanted_text[32], left_text[32], all_text[32];
        d->api->memory_info(&left, &all);
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: %s need %s, but %s of %s are free",
                       device->name, what, bel_bytes_text(bytes, wanted_text),
                       bel_bytes_text(left, left_text), bel_bytes_text(all, all_text));
    }
    BEL_TRY(bel_cuda_status(error, "allocate memory"));
    *out_memory = (bel_device_memory){.address = as_pointer(address), .bytes = bytes};
    return NULL;
}

// A hanging GPU may still copy from and to the memory of the process and of other GPUs, and the
// driver would wait for it for ever. So after the first loss nothing is freed or unpinned.
static void device_release(bel_device *device, bel_device_memory *memory)
{
    bel_cuda_device *d = of(device);
    if (memory->address == NULL) return;
    atomic_fetch_sub(&d->taken, memory->bytes);
    if (!bel_cuda_has_lost_card()) {
        d->api->context_set(d->context);
        d->api->release((uint64_t)(uintptr_t)memory->address);
    }
    *memory = (bel_device_memory){.address = NULL};
}

static bool device_look(bel_device *device, bel_device_use *out_use)
{
    const bel_cuda_device *d = of(device);
    bel_device_use use = {.taken = atomic_load(&d->taken)};
    if (bel_device_is_lost(device) || d->api->context_set(d->context) != 0) return false;
    if (d->api->memory_info(&use.free, &use.all) != 0) return false;
    *out_use = use;
    return true;
}

// The driver's functions declare memory that they only register as mutable.
static void *as_mutable(const void *memory)
{
    union {
        const void *read;
        void *write;
    } address = {.read = memory};
    return address.write;
}

// Memory that cannot be registered, or is registered already, is copied through the driver's
// buffers. Memory that is read-only to this process, as another process's parameters, can be
// registered only as such.
static void device_pin(bel_device *device, const void *memory, size_t bytes)
{
    static const unsigned ways[] = {BEL_CUDA_HOST_PORTABLE,
                                    BEL_CUDA_HOST_PORTABLE | BEL_CUDA_HOST_READ_ONLY};
    const bel_cuda_device *d = of(device);
    if (memory == NULL || bel_cuda_has_lost_card()) return; // the driver may wait for it
    d->api->context_set(d->context);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (d->api->host_register(as_mutable(memory), bytes, ways[i]) == 0) return;
    bel_log_write(BEL_LOG_DEBUG, "%s: %zu bytes are not pinned", device->name, bytes);
}

static void device_unpin(bel_device *device, const void *memory)
{
    const bel_cuda_device *d = of(device);
    if (memory == NULL || bel_cuda_has_lost_card()) return;
    d->api->context_set(d->context);
    d->api->host_unregister(
        as_mutable(memory)); // unregistered memory gives an error that changes nothing
}

static const bel_device_ops ops = {.allocate = device_allocate,
                                   .release = device_release,
                                   .look = device_look,
                                   .prepare = bel_cuda_prepare,
                                   .takes_bf16 = bel_cuda_takes_bf16,
                                   .bind = bel_cuda_bind,
                                   .unbind = bel_cuda_unbind,
                                   .run = bel_cuda_run,
                                   .profile = bel_cuda_profile,
                                   .result = bel_cuda_result,
                                   .exchanged = bel_cuda_exchanged,
                                   .pin = device_pin,
                                   .unpin = device_unpin};

// --- Discovery -----------------------------------------------------------------------------------

bool bel_cuda_is_built(void)
{
    return true;
}

bel_status *bel_cuda_count(int *out_count)
{
    const bel_cuda_api *api;
    *out_count = 0;
    BEL_TRY(bel_cuda_open_api(&api));
    return bel_cuda_status(api->device_count(out_count), "count GPUs");
}

static bel_status *read_card(const bel_cuda_api *api, int number, bel_cuda_card *card)
{
    *card = (bel_cuda_card){.major = 0};
    int error = api->device_name(card->name, (int)sizeof card->name, number);
    if (error == 0) error = api->device_pci(card->pci, (int)sizeof card->pci, number);
    if (error == 0) error = api->device_memory(&card->memory_bytes, number);
    if (error == 0) error = api->device_attribute(&card->major, BEL_CUDA_ATTRIBUTE_MAJOR, number);
    if (error == 0) error = api->device_attribute(&card->minor, BEL_CUDA_ATTRIBUTE_MINOR, number);
    return bel_cuda_status(error, "describe a GPU");
}

// The driver's number of a GPU, counted by place on the PCI bus in any order of the driver's.
static bel_status *find_card(const bel_cuda_api *api, int index, int *out_number,
                             bel_cuda_card *out_card)
{
    bel_cuda_card cards[BEL_CUDA_MOST_CARDS];
    int count = 0, order[BEL_CUDA_MOST_CARDS], numbers[BEL_CUDA_MOST_CARDS];
    BEL_TRY(bel_cuda_status(api->device_count(&count), "count GPUs"));
    if (count > BEL_CUDA_MOST_CARDS) count = BEL_CUDA_MOST_CARDS;
    if (index < 0 || index >= count)
        return BEL_ERR(BEL_OUT_OF_RANGE, "there is no GPU %d: this machine has %d", index, count);
    for (int i = 0; i < count; i++) {
        BEL_TRY(bel_cuda_status(api->device(&numbers[i], i), "open a GPU"));
        BEL_TRY(read_card(api, numbers[i], &cards[i]));
        int at = i;
        for (; at > 0 && strcmp(cards[order[at - 1]].pci, cards[i].pci) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    *out_number = numbers[order[index]];
    *out_card = cards[order[index]];
    return NULL;
}

bel_status *bel_cuda_card_at(int index, bel_cuda_card *out_card)
{
    const bel_cuda_api *api;
    int number;
    BEL_TRY(bel_cuda_open_api(&api));
    return find_card(api, index, &number, out_card);
}

static bel_status *device_make(int index, bel_cuda_device **out_device)
{
    bel_cuda_device made = {.device = {.ops = &ops, .number = index}};
    BEL_TRY(bel_cuda_open_api(&made.api));
    BEL_TRY(find_card(made.api, index, &made.number, &made.card));
    BEL_TRY(
        bel_cuda_status(made.api->device_attribute(&made.multiprocessors,
                                                   BEL_CUDA_ATTRIBUTE_MULTIPROCESSORS, made.number),
                        "describe a GPU"));
    BEL_TRY(bel_cuda_status(made.api->context_retain(&made.context, made.number),
                            "open a GPU's context"));
    bel_snprintf(made.device.name, sizeof made.device.name, "cuda:%d", index);
    bel_cuda_device *kept = bel_xcalloc(1, sizeof *kept);
    *kept = made;
    pthread_mutex_init(&kept->mutex, NULL);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&kept->libraries_mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    *out_device = kept;
    return NULL;
}

bel_status *bel_cuda_device_get(int index, bel_device **out_device)
{
    bel_status *status = NULL;
    bel_cuda_device *found = NULL;
    pthread_mutex_lock(&devices_mutex);
    bool known = index >= 0 && index < BEL_CUDA_MOST_CARDS;
    if (known) found = devices[index];
    if (found == NULL) status = device_make(index, &found);
    if (known && status == NULL) devices[index] = found;
    pthread_mutex_unlock(&devices_mutex);
    if (status == NULL) *out_device = &found->device;
    return status;
}

const char *bel_cuda_version_text(char text[BEL_CUDA_TEXT])
{
    const bel_cuda_api *api;
    bel_status *status = bel_cuda_open_api(&api);
    if (status == NULL) {
        bel_snprintf(text, BEL_CUDA_TEXT, "driver %d.%d, NVRTC %d.%d", api->driver / 1000,
                     api->driver % 1000 / 10, api->nvrtc / 1000, api->nvrtc % 1000 / 10);
    } else {
        bel_snprintf(text, BEL_CUDA_TEXT, "%s", bel_status_message(status));
        bel_status_ignore(status); // now in `text`
    }
    return text;
}
