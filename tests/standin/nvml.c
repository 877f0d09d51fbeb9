/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for NVIDIA's libnvidia-ml.so.1, so that the real NVML backend runs on machines without a GPU. It
 * does what the file named by MGPU_NVML_STANDIN says, which it reads anew at every call:
 *
 *   init N                   nvmlInit returns N (9: the driver is not loaded)
 *   gpu DOMAIN BUS MEMORY_MIB USED_MIB UTILIZATION CELSIUS MILLIWATTS UUID NAME...
 *                            one GPU, in NVML's own order; DOMAIN and BUS are hexadecimal
 *   lost I                   GPU I of NVML's order has fallen off the bus
 *   link I J                 an NVLink from GPU I to GPU J of NVML's order; J may be no GPU: a switch
 *   hang 1                   measuring calls never return
 *
 * With OLD_DRIVER it has only the functions that drivers of ten years ago had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS_MAX      16
#define LINKS_MAX     64
#define BAD_ARGUMENT  2
#define UNKNOWN_ERROR 999
#define NOT_FOUND     6
#define LOST          15
#define EXPORT        __attribute__((visibility("default")))

struct gpu {
    unsigned int domain, bus, memory_mib, used_mib, utilization, celsius, milliwatts;
    char uuid[64], name[64];
    int is_lost;
};

struct link {
    unsigned int from, to;
};

struct machine {
    int init, is_hanging;
    unsigned int n_links;
    struct link links[LINKS_MAX];
    unsigned int count;
    struct gpu gpus[GPUS_MAX];
};

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

struct utilization {
    unsigned int gpu, memory;
};

static void read_line(struct machine *machine, const char *line)
{
    struct gpu gpu = { 0 };
    unsigned int i;
    struct link link;
    if (sscanf(line, "link %u %u", &link.from, &link.to) == 2 && machine->n_links < LINKS_MAX)
        machine->links[machine->n_links++] = link;
    (void)sscanf(line, "init %d", &machine->init);
    (void)sscanf(line, "hang %d", &machine->is_hanging);
    if (sscanf(line, "lost %u", &i) == 1 && i < GPUS_MAX)
        machine->gpus[i].is_lost = 1;
    if (sscanf(line, "gpu %x %x %u %u %u %u %u %63s %63[^\n]", &gpu.domain, &gpu.bus, &gpu.memory_mib,
            &gpu.used_mib, &gpu.utilization, &gpu.celsius, &gpu.milliwatts, gpu.uuid, gpu.name) == 9 &&
        machine->count < GPUS_MAX)
        machine->gpus[machine->count++] = gpu;
}

static struct machine look(void)
{
    struct machine machine = { 0 };
    char line[256];
    const char *path = getenv("MGPU_NVML_STANDIN");
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    if (file == NULL) {
        machine.init = UNKNOWN_ERROR;
        return machine;
    }
    while (fgets(line, sizeof(line), file) != NULL)
        read_line(&machine, line);
    (void)fclose(file);
    return machine;
}

/* A handle is the index in NVML's order plus one. Returns NVML's code. */
static int find(void *device, struct gpu *gpu, int is_measuring)
{
    struct machine machine = look();
    size_t i = (size_t)device - 1;
    while (is_measuring && machine.is_hanging)
        (void)pause();
    if (i >= machine.count)
        return NOT_FOUND;
    *gpu = machine.gpus[i];
    return is_measuring && gpu->is_lost ? LOST : 0;
}

static int give_text(const char *from, char *to, unsigned int size)
{
    (void)snprintf(to, size, "%s", from);
    return 0;
}

static int count_gpus(unsigned int *count)
{
    *count = look().count;
    return 0;
}

static int give_handle(unsigned int index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return index < look().count ? 0 : NOT_FOUND;
}

int nvmlInit(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount(unsigned int *count);
int nvmlDeviceGetHandleByIndex(unsigned int index, void **device);
int nvmlDeviceGetUUID(void *device, char *text, unsigned int size);
int nvmlDeviceGetName(void *device, char *text, unsigned int size);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);

EXPORT int nvmlInit(void)
{
    return look().init;
}

EXPORT int nvmlShutdown(void)
{
    return 0;
}

EXPORT const char *nvmlErrorString(int code)
{
    return code == UNKNOWN_ERROR ? "Unknown Error" : "Some Error";
}

EXPORT int nvmlDeviceGetCount(unsigned int *count)
{
    return count_gpus(count);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned int index, void **device)
{
    return give_handle(index, device);
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int size)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    return code != 0 ? code : give_text(gpu.uuid, text, size);
}

EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned int size)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    return code != 0 ? code : give_text(gpu.name, text, size);
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    if (code != 0)
        return code;
    memory->total = (unsigned long long)gpu.memory_mib << 20;
    memory->used = (unsigned long long)(gpu.used_mib + 400) << 20; // with what the driver keeps for itself
    memory->free = memory->total - memory->used;
    return 0;
}

#ifndef OLD_DRIVER
int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci *pci);

/* The `link`th one of this GPU; NULL when it has fewer. */
static const struct link *find_link(const struct machine *machine, const void *device, unsigned int link)
{
    for (unsigned int i = 0; i < machine->n_links; i++)
        if (machine->links[i].from == (unsigned int)((size_t)device - 1) && link-- == 0)
            return &machine->links[i];
    return NULL;
}

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active)
{
    struct machine machine = look();
    *is_active = 1;
    return find_link(&machine, device, link) != NULL ? 0 : BAD_ARGUMENT;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci *pci)
{
    struct machine machine = look();
    const struct link *found = find_link(&machine, device, link);
    if (found == NULL)
        return BAD_ARGUMENT;
    memset(pci, 0, sizeof(*pci));
    pci->domain = found->to < machine.count ? machine.gpus[found->to].domain : 0xffff;
    pci->bus = found->to < machine.count ? machine.gpus[found->to].bus : 0xff;
    return 0;
}

EXPORT int nvmlInit_v2(void)
{
    return look().init;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
    return count_gpus(count);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    return give_handle(index, device);
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    if (code != 0)
        return code;
    memset(pci, 0, sizeof(*pci));
    pci->domain = gpu.domain;
    pci->bus = gpu.bus;
    (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "%08x:%02x:00.0", gpu.domain, gpu.bus & 0xffU);
    return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    if (code != 0)
        return code;
    if (memory->version != (sizeof(*memory) | (2U << 24)))
        return 25; // version mismatch
    memory->total = (unsigned long long)gpu.memory_mib << 20;
    memory->reserved = 400ULL << 20;
    memory->used = (unsigned long long)gpu.used_mib << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return 0;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    utilization->gpu = gpu.utilization;
    utilization->memory = 0;
    return code;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    *celsius = gpu.celsius;
    return code;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    *milliwatts = gpu.milliwatts;
    return code;
}
#endif
