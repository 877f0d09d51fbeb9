/* SPDX-License-Identifier: MIT */
/*
 * Libraries of GPU drivers that answer anything, by the first byte of the input: 'n' NVML, whose GPUs are
 * found, described and sampled as by the helper process, 'r' ROCm SMI. Each answer is the next bytes of the
 * input: a code and what the function writes. The report that is made of them is one that the agent takes,
 * and comes out of its record as it went in; values beyond the limits of the readers are missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "agent/gpu/nvml_api.h"
#include "agent/gpu/report.h"
#include "agent/gpu/rocm_api.h"
#include "agent/gpu/rocm_reader.h"
#include "base/memory.h"
#include "fuzz.h"
#include "input.h"

#include "base/gpu_vendor.h"

#define GPUS_MOST    6U
#define SAMPLES      8
#define PIPE_BYTES   4096
#define ROCM_GPUS    20U // more than fit into the pipe: the reader ends when it is full
#define ROCM_PAST    (GPU_ENERGY | GPU_ECC | GPU_POWER_LIMIT | GPU_SM_CLOCK | GPU_MEMORY_CLOCK)
#define CODE_SUCCESS 0xc0 // bytes below: most answers are good ones

static struct input source; // of all answers

/* What is missing at the end is zero. */
static void fill(void *at, size_t size)
{
    size_t length;
    const uint8_t *run = input_run(&source, size, &length);
    memset(at, 0, size);
    if (length > 0)
        memcpy(at, run, length);
}

static int code(void)
{
    uint8_t byte = input_byte(&source);
    return byte < CODE_SUCCESS ? 0 : byte & 0x1f;
}

/* --- NVML --- */

static int answer_nothing(void)
{
    return code();
}

static const char *answer_text(int number)
{
    static char text[300];
    fill(text, sizeof(text) - 1);
    return input_byte(&source) == 0xff ? NULL : text;
}

static int answer_number(void *device, unsigned int *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_few(void *device, unsigned int *ret)
{
    *ret = input_byte(&source) % (GPUS_MOST + 1);
    return code();
}

static int answer_count(unsigned int *ret)
{
    return answer_few(NULL, ret);
}

static int answer_large(void *device, unsigned long long *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_handle(unsigned int index, nvml_device *ret)
{
    *ret = (void *)(uintptr_t)(index + 1);
    return code();
}

static int answer_handle_at(const char *address, nvml_device *ret)
{
    return answer_handle(0, ret);
}

static int answer_instance(nvml_device device, unsigned int index, nvml_device *ret)
{
    return answer_handle(index + 100, ret);
}

/* Not always terminated, and not always as long as it could be. */
static int answer_name(nvml_device device, char *text, unsigned int size)
{
    unsigned int wanted = input_byte(&source);
    fill(text, wanted < size ? wanted : size);
    return code();
}

static int answer_pci(nvml_device device, struct nvml_pci *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_memory(nvml_device device, struct nvml_memory *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_memory_v2(nvml_device device, struct nvml_memory_v2 *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_utilization(nvml_device device, struct nvml_utilization *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_attributes(nvml_device device, struct nvml_attributes *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_of_kind(nvml_device device, int kind, unsigned int *ret)
{
    return answer_number(device, ret);
}

static int answer_errors(nvml_device device, int kind, int counter, unsigned long long *ret)
{
    return answer_large(device, ret);
}

static int answer_modes(nvml_device device, unsigned int *current, unsigned int *pending)
{
    (void)answer_few(device, current);
    return answer_few(device, pending);
}

static int answer_fields(nvml_device device, int count, struct nvml_field *fields)
{
    fill(fields, (size_t)count * sizeof(*fields));
    return code();
}

static int answer_link(nvml_device device, unsigned int link, unsigned int *ret)
{
    return answer_few(device, ret);
}

static int answer_link_pci(nvml_device device, unsigned int link, struct nvml_pci *ret)
{
    return answer_pci(device, ret);
}

/* As a driver does: no more elements than there is room for, of one of the sizes that there have been. */
static int answer_processes(nvml_device device, unsigned int *count, void *infos)
{
    static const size_t sizes[] = { 16, 24, 32, 32 };
    size_t size = sizes[input_byte(&source) & 3];
    unsigned int room = *count, found = input_number(&source) % 200;
    fill(infos, (found < room ? found : room) * size);
    *count = input_byte(&source) == 0xff ? ~0U : found;
    return *count > room && (input_byte(&source) & 1) == 0 ? NVML_INSUFFICIENT_SIZE : code();
}

static const struct nvml_api nvml_whole = {
    .init = answer_nothing,
    .shutdown = answer_nothing,
    .error_string = answer_text,
    .count = answer_count,
    .handle = answer_handle,
    .handle_at = answer_handle_at,
    .uuid = answer_name,
    .name = answer_name,
    .pci = answer_pci,
    .minor = answer_number,
    .memory = answer_memory,
    .memory_v2 = answer_memory_v2,
    .utilization = answer_utilization,
    .temperature = answer_of_kind,
    .power = answer_number,
    .power_limit = answer_number,
    .energy = answer_large,
    .clock = answer_of_kind,
    .ecc = answer_errors,
    .mig_mode = answer_modes,
    .mig_count = answer_few,
    .mig_handle = answer_instance,
    .gpu_instance = answer_number,
    .compute_instance = answer_number,
    .attributes = answer_attributes,
    .compute_mode = answer_few,
    .numa_node = answer_number,
    .fields = answer_fields,
    .link_state = answer_link,
    .link_pci = answer_link_pci,
    .compute = answer_processes,
    .graphics = answer_processes,
    .mps = answer_processes,
    .compute_v1 = answer_processes,
    .graphics_v1 = answer_processes,
    .mps_v1 = answer_processes,
};

/* Functions that a driver may lack; the events have a thread of their own, and are left to it. */
#define LACK(member)                                                                                         \
    {                                                                                                        \
        offsetof(struct nvml_api, member), sizeof(nvml_whole.member)                                         \
    }
static const struct {
    size_t offset, size;
} optional[] = { LACK(handle_at), LACK(uuid), LACK(name), LACK(pci), LACK(minor), LACK(memory),
    LACK(memory_v2), LACK(utilization), LACK(power), LACK(energy), LACK(clock), LACK(ecc), LACK(mig_mode),
    LACK(mig_count), LACK(attributes), LACK(compute_mode), LACK(numa_node), LACK(fields), LACK(link_state),
    LACK(compute), LACK(graphics), LACK(mps), LACK(compute_v1), LACK(error_string) };

int nvml_api_load(const char *path, struct nvml_api *ret, struct error *err)
{
    uint32_t lacking;
    fill(&lacking, sizeof(lacking));
    *ret = nvml_whole;
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
        if ((lacking >> i & 1) != 0)
            memset((char *)ret + optional[i].offset, 0, optional[i].size);
    return 0;
}

void nvml_api_unload(struct nvml_api *api)
{
}

const char *nvml_api_describe(const struct nvml_api *api, int number)
{
    const char *text = api->error_string != NULL ? api->error_string(number) : NULL;
    return text != NULL ? text : "unknown error";
}

/* nvidia-modprobe */
int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
    char *const environment[restrict])
{
    return ENOENT;
}

static void check_gpu(const struct gpu_state *gpu)
{
    must_be(gpu->model == NULL || is_printable(gpu->model));
    must_be(gpu->trouble == NULL || is_printable(gpu->trouble));
    must_be((gpu->valid & GPU_UTILIZATION) == 0 || gpu->utilization_percent <= 100);
    must_be((gpu->valid & GPU_TEMPERATURE) == 0 || gpu->temperature_c <= 200);
    must_be((gpu->valid & GPU_MEMORY_USED) == 0 || gpu->memory_bytes == 0 ||
            gpu->memory_used_bytes <= gpu->memory_bytes);
    must_be(gpu->is_lost == 0 || (gpu->valid == 0 && gpu->trouble != NULL));
    must_be(gpu->processes.count <= GPU_PROCESSES_MAX);
    const struct gpu_process *processes = gpu->processes.items;
    for (size_t i = 0; i < gpu->processes.count; i++)
        must_be(processes[i].pid != 0);
}

/* The agent reads what the helper wrote. */
static void check_report(struct gpu_report *report)
{
    struct error err = { 0 };
    struct gpu_report again;
    _cleanup_buffer_ struct buffer bytes = { 0 }, same = { 0 };
    gpu_processes_share(&report->gpus);
    must_be(record_check(&gpu_report_record, report, &err) == 0);
    record_encode(&gpu_report_record, report, &bytes);
    must_be(record_decode(&gpu_report_record, bytes.bytes, bytes.length, &again, &err) == 0);
    record_encode(&gpu_report_record, &again, &same);
    must_be(bytes.length == same.length && memcmp(bytes.bytes, same.bytes, same.length) == 0);
    record_clear(&gpu_report_record, &again);
}

static void try_nvml(void)
{
    static const struct gpu_spec spec = { .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_NVIDIA };
    struct error err = { 0 };
    char remark[200] = "";
    void *nvml = NULL;
    if (gpu_nvml.open(&spec, NULL, &nvml, &err) < 0) {
        must_be(err.message[0] != '\0');
        return;
    }
    size_t count = gpu_nvml.count(nvml);
    struct gpu_state *gpus = xcalloc(count + 1, sizeof(*gpus));
    struct gpu_report report = { .gpus = { gpus, count } };
    for (size_t i = 0; i < count; i++)
        gpu_nvml.describe(nvml, i, &gpus[i]);
    for (size_t k = 0; k < SAMPLES; k++)
        for (size_t i = 0; i < count; i++) {
            (k == 1 ? gpu_nvml.look : gpu_nvml.sample)(nvml, i, &gpus[i]);
            check_gpu(&gpus[i]);
        }
    gpu_nvml.remark(nvml, remark, sizeof(remark));
    (void)gpu_nvml.is_outdated(nvml);
    check_report(&report);
    record_clear(&gpu_report_record, &report);
    gpu_nvml.close(nvml);
}

/* --- ROCm --- */

static int answer_init(uint64_t flags)
{
    return code();
}

static int answer_rocm_count(uint32_t *ret)
{
    *ret = input_byte(&source) % (ROCM_GPUS + 2);
    return code();
}

static int answer_address(uint32_t index, uint64_t *ret)
{
    *ret = (uint64_t)(index + 1) << 8 | input_byte(&source) % 2;
    return code();
}

static int answer_status(int number, const char **ret)
{
    *ret = answer_text(number);
    return code();
}

static int answer_energy(uint32_t index, uint64_t *counter, float *microjoules, uint64_t *timestamp_ns)
{
    fill(counter, sizeof(*counter));
    fill(microjoules, sizeof(*microjoules));
    fill(timestamp_ns, sizeof(*timestamp_ns));
    return code();
}

static int answer_limit(uint32_t index, uint32_t sensor, uint64_t *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

static int answer_clocks(uint32_t index, int kind, void *clocks)
{
    fill(clocks, input_byte(&source) < 0x80 ? 280 : ROCM_CLOCKS_SIZE);
    return code();
}

static int answer_blocks(uint32_t index, uint64_t *ret)
{
    *ret = input_byte(&source);
    return code();
}

static int answer_block_errors(uint32_t index, uint64_t block, struct rocm_errors *ret)
{
    fill(ret, sizeof(*ret));
    return code();
}

/* The linker puts it in the place of rocm_api_load(). */
int __wrap_rocm_api_load(const char *path, struct rocm_api *ret, struct error *err);

int __wrap_rocm_api_load(const char *path, struct rocm_api *ret, struct error *err)
{
    *ret = (struct rocm_api){ .init = answer_init,
        .shut_down = answer_nothing,
        .status_string = answer_status,
        .count = answer_rocm_count,
        .pci = answer_address,
        .energy = answer_energy,
        .power_limit = answer_limit,
        .clocks = answer_clocks,
        .ecc_blocks = answer_blocks,
        .ecc = answer_block_errors };
    return 0;
}

static void check_news(const struct rocm_news *news)
{
    const struct rocm_values *values = &news->values;
    must_be(news->position == ROCM_ALL_GPUS || news->position < ROCM_GPUS);
    must_be(memchr(news->why, '\0', sizeof(news->why)) != NULL);
    must_be((values->valid & ~(uint32_t)ROCM_PAST) == 0);
    must_be((values->valid & GPU_POWER_LIMIT) == 0 || values->power_limit_mw <= 10000000);
    must_be((values->valid & GPU_SM_CLOCK) == 0 || values->sm_clock_mhz <= 100000);
    must_be((values->valid & GPU_MEMORY_CLOCK) == 0 || values->memory_clock_mhz <= 100000);
    must_be((values->valid & GPU_ENERGY) == 0 || values->energy_mj > 0);
    must_be((values->valid & GPU_ECC) == 0 ||
            (values->ecc_corrected != UINT64_MAX && values->ecc_uncorrected != UINT64_MAX));
}

static void try_rocm(void)
{
    char texts[ROCM_GPUS][24];
    const char *addresses[ROCM_GPUS];
    struct rocm_news news;
    int ends[2];
    for (unsigned i = 0; i < ROCM_GPUS; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "0000:%02x:00.0", i + 1);
        addresses[i] = texts[i];
    }
    must_be(
        pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES);
    rocm_reader_run(ends[1], NULL, addresses, ROCM_GPUS);
    while (read(ends[0], &news, sizeof(news)) == (ssize_t)sizeof(news))
        check_news(&news);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    source = (struct input){ bytes, length, 1 };
    if (length > 0 && bytes[0] == 'n')
        try_nvml();
    else if (length > 0 && bytes[0] == 'r')
        try_rocm();
    return 0;
}
