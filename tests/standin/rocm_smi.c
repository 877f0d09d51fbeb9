/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for ROCm's librocm_smi64.so, so that what the agent takes from it can be tried without an AMD
 * GPU. It does what a state file says, which it reads anew at every call: the one named by MGPU_ROCM_STANDIN,
 * else `rocm.state` beside the library itself. GPUs are numbered as their lines come, from 0:
 *
 *   gpu DOMAIN BUS SLOT FUNCTION PARTITION    one GPU, in the library's own order; all hexadecimal
 *   energy I COUNT MICROJOULES                its counter, and what one count is worth
 *   limit I MICROWATTS                        its power limit
 *   clocks I COUNT CURRENT HERTZ MEMORY_HERTZ its clocks: COUNT of them, the one in use is number CURRENT
 *   ecc I BLOCKS CORRECTED UNCORRECTED        its errors; BLOCKS is a mask, hexadecimal, 1: the memory
 *   fail FUNCTION CODE                        that function returns CODE
 *   crash FUNCTION                            it ends the process
 *   hang FUNCTION                             it does not return while this line is here
 *
 * What a GPU has no line for is not supported. With OLD_LIBRARY it has the clocks of before ROCm 6 and no
 * energy.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPUS_MAX      16
#define INVALID       1
#define NOT_SUPPORTED 2
#define NOT_FOUND     10
#define CLOCKS_MAX    33
#define MEMORY_CLOCK  4
#define POLL_NS       2000000L
#define EXPORT        __attribute__((visibility("default")))

struct gpu {
    unsigned int domain, bus, slot, function, partition;
    int has_energy, has_limit, has_clocks, has_ecc;
    uint64_t energy, limit, hertz[2], blocks, corrected, uncorrected;
    float microjoules;
    uint32_t n_clocks, current;
};

struct machine {
    int code, is_hanging; // of the function that asks
    uint32_t count;
    struct gpu gpus[GPUS_MAX];
};

#ifdef OLD_LIBRARY
struct clocks {
    uint32_t count, current;
    uint64_t hertz[CLOCKS_MAX - 1];
};
#else
struct clocks {
    _Bool sleeps;
    uint32_t count, current;
    uint64_t hertz[CLOCKS_MAX];
};
#endif

struct errors {
    uint64_t corrected, uncorrected;
};

static FILE *open_state(void)
{
    char path[4096];
    Dl_info self;
    const char *named = getenv("MGPU_ROCM_STANDIN");
    if (named != NULL)
        return fopen(named, "re");
    if (dladdr((void *)(size_t)open_state, &self) == 0)
        return NULL;
    const char *slash = strrchr(self.dli_fname, '/');
    if (slash == NULL)
        return NULL;
    (void)snprintf(path, sizeof(path), "%.*s/rocm.state", (int)(slash - self.dli_fname), self.dli_fname);
    return fopen(path, "re");
}

static void read_values(struct gpu *gpu, const char *line)
{
    unsigned int i;
    gpu->has_energy |= sscanf(line, "energy %u %lu %f", &i, &gpu->energy, &gpu->microjoules) == 3;
    gpu->has_limit |= sscanf(line, "limit %u %lu", &i, &gpu->limit) == 2;
    gpu->has_clocks |= sscanf(line, "clocks %u %u %u %lu %lu", &i, &gpu->n_clocks, &gpu->current,
                           &gpu->hertz[0], &gpu->hertz[1]) == 5;
    gpu->has_ecc |=
        sscanf(line, "ecc %u %lx %lu %lu", &i, &gpu->blocks, &gpu->corrected, &gpu->uncorrected) == 4;
}

static void read_line(struct machine *machine, const char *line, const char *asker)
{
    char function[64];
    struct gpu gpu = { 0 };
    unsigned int i;
    int code;
    if (sscanf(line, "gpu %x %x %x %x %x", &gpu.domain, &gpu.bus, &gpu.slot, &gpu.function, &gpu.partition) ==
            5 &&
        machine->count < GPUS_MAX)
        machine->gpus[machine->count++] = gpu;
    if (sscanf(line, "fail %63s %d", function, &code) == 2 && strcmp(function, asker) == 0)
        machine->code = code;
    if (sscanf(line, "crash %63s", function) == 1 && strcmp(function, asker) == 0)
        (void)raise(SIGKILL);
    if (sscanf(line, "hang %63s", function) == 1 && strcmp(function, asker) == 0)
        machine->is_hanging = 1;
    if (sscanf(line, "%*s %u", &i) == 1 && strncmp(line, "gpu", 3) != 0 && i < machine->count)
        read_values(&machine->gpus[i], line);
}

static void read_machine(struct machine *machine, const char *asker)
{
    char line[256];
    FILE *file = open_state();
    *machine = (struct machine){ .code = file == NULL ? NOT_FOUND : 0 };
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        read_line(machine, line, asker);
    if (file != NULL)
        (void)fclose(file);
}

/* Returns when the state file does not say any more that this function hangs. */
static struct machine look(const char *asker)
{
    const struct timespec pause = { 0, POLL_NS };
    struct machine machine;
    read_machine(&machine, asker);
    while (machine.is_hanging) {
        (void)nanosleep(&pause, NULL);
        read_machine(&machine, asker);
    }
    return machine;
}

static int find(const char *asker, uint32_t index, struct gpu *gpu)
{
    struct machine machine = look(asker);
    if (index >= machine.count)
        return INVALID;
    *gpu = machine.gpus[index];
    return machine.code;
}

int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_status_string(int code, const char **text);
int rsmi_num_monitor_devices(uint32_t *count);
int rsmi_dev_pci_id_get(uint32_t index, uint64_t *address);
int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counter, float *microjoules, uint64_t *timestamp_ns);
int rsmi_dev_power_cap_get(uint32_t index, uint32_t sensor, uint64_t *microwatts);
int rsmi_dev_gpu_clk_freq_get(uint32_t index, int kind, struct clocks *clocks);
int rsmi_dev_ecc_enabled_get(uint32_t index, uint64_t *blocks);
int rsmi_dev_ecc_count_get(uint32_t index, uint64_t block, struct errors *errors);

EXPORT int rsmi_init(uint64_t flags)
{
    return look(__func__).code;
}

EXPORT int rsmi_shut_down(void)
{
    return 0;
}

EXPORT int rsmi_status_string(int code, const char **text)
{
    *text = "RSMI_STATUS_SOME_ERROR";
    return 0;
}

EXPORT int rsmi_num_monitor_devices(uint32_t *count)
{
    struct machine machine = look(__func__);
    *count = machine.count;
    return machine.code;
}

EXPORT int rsmi_dev_pci_id_get(uint32_t index, uint64_t *address)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code == 0)
        *address = (uint64_t)gpu.domain << 32 | (uint64_t)gpu.partition << 28 | gpu.bus << 8 | gpu.slot << 3 |
                   gpu.function;
    return code;
}

#ifndef OLD_LIBRARY
EXPORT int rsmi_dev_energy_count_get(
    uint32_t index, uint64_t *counter, float *microjoules, uint64_t *timestamp_ns)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code != 0 || !gpu.has_energy)
        return code != 0 ? code : NOT_SUPPORTED;
    *counter = gpu.energy;
    *microjoules = gpu.microjoules;
    *timestamp_ns = 1;
    return 0;
}
#endif

EXPORT int rsmi_dev_power_cap_get(uint32_t index, uint32_t sensor, uint64_t *microwatts)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code != 0 || !gpu.has_limit || sensor != 0)
        return code != 0 ? code : NOT_SUPPORTED;
    *microwatts = gpu.limit;
    return 0;
}

EXPORT int rsmi_dev_gpu_clk_freq_get(uint32_t index, int kind, struct clocks *clocks)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code != 0 || !gpu.has_clocks)
        return code != 0 ? code : NOT_SUPPORTED;
    clocks->count = gpu.n_clocks;
    clocks->current = gpu.current;
    for (uint32_t i = 0; i < sizeof(clocks->hertz) / sizeof(clocks->hertz[0]); i++)
        clocks->hertz[i] = i == gpu.current ? gpu.hertz[kind == MEMORY_CLOCK] : 1000000;
    return 0;
}

EXPORT int rsmi_dev_ecc_enabled_get(uint32_t index, uint64_t *blocks)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code != 0 || !gpu.has_ecc)
        return code != 0 ? code : NOT_SUPPORTED;
    *blocks = gpu.blocks;
    return 0;
}

EXPORT int rsmi_dev_ecc_count_get(uint32_t index, uint64_t block, struct errors *errors)
{
    struct gpu gpu;
    int code = find(__func__, index, &gpu);
    if (code != 0 || !gpu.has_ecc || (block & gpu.blocks) == 0)
        return code != 0 ? code : NOT_SUPPORTED;
    errors->corrected = gpu.corrected;
    errors->uncorrected = gpu.uncorrected;
    return 0;
}
