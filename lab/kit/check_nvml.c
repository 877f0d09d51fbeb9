/* SPDX-License-Identifier: MIT */
/*
 * NVML as this driver has it: each call that mgpu makes, its code and its time for each GPU; a whole sample
 * as the agent takes it, at rest and while programs start on the GPUs; and the numbers by which NVML, the
 * kernel and CUDA know the same GPU.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/gpu.h"
#include "agent/gpu/nvml_api.h"
#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "lab/kit/child.h"
#include "lab/kit/kit.h"
#include "lab/kit/probe.h"
#include "wire/message.h"

#define MISSING        (-1)
#define ROUNDS         5U
#define SAMPLES        20U
#define STORM          8U // programs that start at once
#define KILL_MS        1000
#define INFOS_BYTES    ((size_t)64 << 10)
#define INFOS          1024U
#define SLOW_SAMPLE_US 500000 // of one GPU: the agent takes one each second

union scratch {
    unsigned int numbers[2];
    unsigned long long large;
    struct nvml_memory memory;
    struct nvml_memory_v2 memory_v2;
    struct nvml_utilization utilization;
    struct nvml_pci pci;
    struct nvml_field field;
    char text[NVML_TEXT_SIZE];
    unsigned char infos[INFOS_BYTES];
};

typedef int call_fn(const struct nvml_api *api, nvml_device device, union scratch *s);

#define CALL(name, member, ...)                                                                              \
    static int call_##name(const struct nvml_api *api, nvml_device device, union scratch *s)                 \
    {                                                                                                        \
        return api->member == NULL ? MISSING : api->member(device, __VA_ARGS__);                             \
    }
CALL(uuid, uuid, s->text, sizeof(s->text))
CALL(name, name, s->text, sizeof(s->text))
CALL(pci, pci, &s->pci)
CALL(minor, minor, s->numbers)
CALL(memory, memory, &s->memory)
CALL(utilization, utilization, &s->utilization)
CALL(temperature, temperature, NVML_TEMPERATURE_GPU, s->numbers)
CALL(power, power, s->numbers)
CALL(power_limit, power_limit, s->numbers)
CALL(energy, energy, &s->large)
CALL(sm_clock, clock, NVML_CLOCK_SM, s->numbers)
CALL(memory_clock, clock, NVML_CLOCK_MEMORY, s->numbers)
CALL(ecc_corrected, ecc, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &s->large)
CALL(ecc_uncorrected, ecc, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &s->large)
CALL(mig_mode, mig_mode, &s->numbers[0], &s->numbers[1])
CALL(compute_mode, compute_mode, s->numbers)
CALL(numa_node, numa_node, s->numbers)
CALL(event_types, event_types, &s->large)

static int call_memory_v2(const struct nvml_api *api, nvml_device device, union scratch *s)
{
    s->memory_v2 = (struct nvml_memory_v2){ .version = NVML_MEMORY_V2 };
    return api->memory_v2 == NULL ? MISSING : api->memory_v2(device, &s->memory_v2);
}

static int call_recovery(const struct nvml_api *api, nvml_device device, union scratch *s)
{
    s->field = (struct nvml_field){ .id = NVML_FIELD_RECOVERY };
    int code = api->fields == NULL ? MISSING : api->fields(device, 1, &s->field);
    return code == NVML_SUCCESS ? s->field.code : code;
}

static int call_processes(const struct nvml_api *api, nvml_device device, union scratch *s)
{
    unsigned int count = INFOS;
    return api->compute == NULL ? MISSING : api->compute(device, &count, s->infos);
}

static const struct {
    const char *name;
    call_fn *call;
} calls[] = { { "uuid", call_uuid }, { "name", call_name }, { "pci", call_pci }, { "minor", call_minor },
    { "memory", call_memory }, { "memory_v2", call_memory_v2 }, { "utilization", call_utilization },
    { "temperature", call_temperature }, { "power", call_power }, { "power_limit", call_power_limit },
    { "energy", call_energy }, { "sm_clock", call_sm_clock }, { "memory_clock", call_memory_clock },
    { "ecc_corrected", call_ecc_corrected }, { "ecc_uncorrected", call_ecc_uncorrected },
    { "mig_mode", call_mig_mode }, { "compute_mode", call_compute_mode }, { "numa_node", call_numa_node },
    { "recovery", call_recovery }, { "processes", call_processes }, { "event_types", call_event_types } };

/* Code, and the shortest and longest time of some rounds. */
static json_t *time_call(
    const struct nvml_api *api, nvml_device device, call_fn *call, union scratch *scratch)
{
    int64_t least = INT64_MAX, most = 0;
    int code = MISSING;
    for (unsigned int i = 0; i < ROUNDS; i++) {
        int64_t begin = clock_boot_us();
        code = call(api, device, scratch);
        int64_t us = clock_boot_us() - begin;
        least = us < least ? us : least;
        most = us > most ? us : most;
    }
    return json_pack("{s:i, s:s, s:I, s:I}", "code", code, "text",
        code == MISSING ? "the library does not have it" : nvml_api_describe(api, code), "least_us",
        (json_int_t)least, "most_us", (json_int_t)most);
}

static json_t *time_gpu(const struct nvml_api *api, unsigned int number, union scratch *scratch)
{
    nvml_device device;
    int64_t begin = clock_boot_us();
    int code = api->handle(number, &device);
    json_t *gpu = json_pack("{s:i, s:i, s:I}", "nvml_index", (int)number, "handle_code", code, "handle_us",
        (json_int_t)(clock_boot_us() - begin));
    for (size_t i = 0; code == NVML_SUCCESS && i < sizeof(calls) / sizeof(calls[0]); i++)
        (void)json_object_set_new(gpu, calls[i].name, time_call(api, device, calls[i].call, scratch));
    return gpu;
}

static const char *first_model(const struct nvml_api *api, unsigned int count, union scratch *scratch)
{
    nvml_device device;
    for (unsigned int i = 0; i < count; i++)
        if (api->handle(i, &device) == NVML_SUCCESS && call_name(api, device, scratch) == NVML_SUCCESS)
            return scratch->text;
    return "a model without a name";
}

static void time_gpus(struct kit *kit, const struct nvml_api *api, struct result *result)
{
    unsigned int count = 0, opened = 0;
    _cleanup_free_ union scratch *scratch = xcalloc(1, sizeof(*scratch));
    json_t *gpus = json_array();
    int code = api->count(&count);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++) {
        json_t *gpu = time_gpu(api, i, scratch);
        opened += json_integer_value(json_object_get(gpu, "handle_code")) == NVML_SUCCESS;
        (void)json_array_append_new(gpus, gpu);
    }
    result_fact(result, "gpus", gpus);
    if (code != NVML_SUCCESS)
        result_fail(result, "NVML cannot count the GPUs: %s", nvml_api_describe(api, code));
    else if (count == 0)
        result_skip(result, "the driver works and has no GPU");
    else if (opened < count)
        result_fail(result, "%u of %u GPUs can be opened", opened, count);
    else
        result_pass(result, "%u GPU%s (%s), each call made %u times", count, count == 1 ? "" : "s",
            first_model(api, count, scratch), ROUNDS);
    if (opened == 0)
        kit->no_gpu = xstrdup("NVML has no GPU that it can open");
}

static void check_nvml(struct kit *kit, struct result *result)
{
    struct nvml_api api;
    struct error err = { 0 };
    if (nvml_api_load(NULL, &api, &err) < 0) {
        result_skip(result, "%s", err.message);
        kit->no_gpu = xstrdup("there is no NVML, and so no GPU that mgpu could manage");
        return;
    }
    struct link_map *map = NULL;
    if (dlinfo(api.library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '/')
        kit->nvml_library = xstrdup(map->l_name);
    result_fact(result, "library", kit->nvml_library != NULL ? json_string(kit->nvml_library) : json_null());
    int64_t begin = clock_boot_us();
    int code = api.init();
    result_fact(result, "init_us", json_integer(clock_boot_us() - begin));
    result_fact(result, "init_code", json_integer(code));
    if (code == NVML_SUCCESS) {
        time_gpus(kit, &api, result);
        (void)api.shutdown();
    } else {
        const char *why = nvml_api_describe(&api, code);
        kit->no_gpu = xasprintf("NVML does not start: %s", why);
        if (code == NVML_NOT_LOADED)
            result_skip(result, "the driver's module is not loaded: %s", why);
        else
            result_fail(result, "NVML does not start: %s (%d)", why, code);
    }
    nvml_api_unload(&api);
}

/* --- samples --- */

struct backend {
    struct gpu_progress *page;
    void *state;
    size_t count;
    struct gpu_state *gpus;
};

static int open_backend(struct backend *backend, struct error *err)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_NVIDIA };
    *backend = (struct backend){ .page = gpu_progress_new() };
    int r = gpu_nvml.open(&spec, backend->page, &backend->state, err);
    if (r < 0) {
        gpu_progress_free(backend->page);
        return r;
    }
    backend->count = gpu_nvml.count(backend->state);
    backend->gpus = xcalloc(backend->count + 1, sizeof(*backend->gpus));
    for (size_t i = 0; i < backend->count; i++)
        gpu_nvml.describe(backend->state, i, &backend->gpus[i]);
    return 0;
}

static void close_backend(struct backend *backend)
{
    for (size_t i = 0; i < backend->count; i++)
        record_clear(&gpu_state_record, &backend->gpus[i]);
    free(backend->gpus);
    gpu_nvml.close(backend->state);
    gpu_progress_free(backend->page);
}

/* Times of `samples` samples of each GPU: the mean and the longest. */
static int64_t time_samples(
    struct backend *backend, unsigned int samples, struct result *result, const char *name)
{
    int64_t sum = 0, most = 0;
    for (unsigned int s = 0; s < samples; s++)
        for (size_t i = 0; i < backend->count; i++) {
            int64_t begin = clock_boot_us();
            gpu_nvml.sample(backend->state, i, &backend->gpus[i]);
            int64_t us = clock_boot_us() - begin;
            sum += us;
            most = us > most ? us : most;
        }
    result_fact(result, name,
        json_pack("{s:f, s:I}", "mean_us", (double)sum / samples / (double)backend->count, "most_us",
            (json_int_t)most));
    return most;
}

static json_t *describe_gpu(const struct gpu_state *gpu)
{
    return json_pack(
        "{s:i, s:s*, s:s*, s:s*, s:i, s:I, s:i, s:I, s:i, s:i, s:i, s:I, s:i, s:b, s:b, s:s*, s:s*, s:i}",
        "index", (int)gpu->index, "uuid", gpu->uuid, "model", gpu->model, "pci", gpu->pci, "minor",
        (int)gpu->minor, "memory_bytes", (json_int_t)gpu->memory_bytes, "valid", (int)gpu->valid,
        "memory_used_bytes", (json_int_t)gpu->memory_used_bytes, "utilization_percent",
        (int)gpu->utilization_percent, "temperature_c", (int)gpu->temperature_c, "power_mw",
        (int)gpu->power_mw, "energy_mj", (json_int_t)gpu->energy_mj, "processes", (int)gpu->processes.count,
        "is_lost", (int)gpu->is_lost, "is_host_memory", (int)gpu->is_host_memory, "trouble", gpu->trouble,
        "refusal", gpu->refusal, "recovery", (int)gpu->recovery);
}

static void start_storm(const struct kit *kit, pid_t pids[STORM])
{
    _cleanup_free_ char *program = xasprintf("%s/mgpu-gpu-test", kit->programs);
    _cleanup_free_ char *log = xasprintf("%s/storm", kit->work);
    const char *const argv[] = { program, "list", NULL };
    for (size_t i = 0; i < STORM; i++)
        pids[i] = child_start(argv, log, -1);
}

/* How many ended well; those that hang are killed. */
static size_t end_storm(const struct kit *kit, pid_t pids[STORM])
{
    size_t good = 0;
    int64_t end_ms = clock_boot_ms() + kit_left_ms(kit, kit->start_ms);
    for (size_t i = 0; i < STORM; i++) {
        int64_t left_ms = end_ms - clock_boot_ms();
        int status = pids[i] > 0 ? child_wait(pids[i], left_ms > 0 ? left_ms : 0) : -1;
        good += status == 0;
        if (pids[i] > 0 && status < 0)
            (void)child_stop(pids[i], SIGKILL, KILL_MS);
    }
    return good;
}

static void check_samples(struct kit *kit, struct result *result)
{
    struct backend backend;
    struct error err = { 0 };
    pid_t pids[STORM];
    size_t lost = 0;
    if (open_backend(&backend, &err) < 0 || backend.count == 0) {
        result_fail(result, "mgpu does not open the GPUs: %s", err.message);
        return;
    }
    int64_t rest = time_samples(&backend, SAMPLES, result, "at_rest");
    start_storm(kit, pids);
    int64_t storm = time_samples(&backend, SAMPLES, result, "while_programs_start");
    result_fact(result, "programs_that_started", json_integer((json_int_t)end_storm(kit, pids)));
    kit->nvml_gpus = json_array();
    kit->gpu = backend.count; // until one is found
    for (size_t i = 0; i < backend.count; i++) {
        lost += backend.gpus[i].is_lost != 0;
        (void)json_array_append_new(kit->nvml_gpus, describe_gpu(&backend.gpus[i]));
        if (kit->gpu == backend.count && backend.gpus[i].refusal == NULL)
            kit->gpu = i;
    }
    kit->gpu = kit->gpu == backend.count ? 0 : kit->gpu;
    result_fact(result, "gpus", json_incref(kit->nvml_gpus));
    int64_t most = rest > storm ? rest : storm;
    if (lost > 0)
        result_fail(result, "%zu of %zu GPUs count as lost", lost, backend.count);
    else if (most > SLOW_SAMPLE_US)
        result_fail(result, "a sample of one GPU took %.1f ms", (double)most / 1000);
    else
        result_pass(result,
            "a sample of one GPU takes at most %.1f ms at rest and %.1f ms while %u programs start",
            (double)rest / 1000, (double)storm / 1000, STORM);
    close_backend(&backend);
}

/* --- numbers --- */

static const json_t *find_gpu(const json_t *gpus, const char *of_cuda)
{
    const json_t *gpu;
    size_t i;
    json_array_foreach(gpus, i, gpu) if (probe_is_same(record_word(gpu, "uuid"), of_cuda)) return gpu;
    return NULL;
}

/* CUDA may see fewer, where this process may not open all; those it sees must be in the same order. */
static void compare_numbers(const struct kit *kit, const json_t *cuda, struct result *result)
{
    const json_t *gpu, *last = NULL;
    size_t i;
    json_array_foreach(cuda, i, gpu)
    {
        const char *uuid = record_word(gpu, "uuid");
        const json_t *same = find_gpu(kit->nvml_gpus, uuid);
        if (same == NULL) {
            result_fail(result, "CUDA's GPU %zu is %s, which NVML does not have", i, uuid);
            return;
        }
        if (last != NULL && json_integer_value(json_object_get(same, "index")) <=
                                json_integer_value(json_object_get(last, "index"))) {
            result_fail(result, "CUDA's GPU %zu is GPU %lld of mgpu, out of order", i,
                (long long)json_integer_value(json_object_get(same, "index")));
            return;
        }
        last = same;
    }
    if (json_array_size(cuda) < json_array_size(kit->nvml_gpus))
        result_pass(result, "CUDA sees %zu of %zu GPUs, in mgpu's order", json_array_size(cuda),
            json_array_size(kit->nvml_gpus));
    else
        result_pass(result, "NVML, CUDA and mgpu number the GPUs alike");
}

static void check_numbers(struct kit *kit, struct result *result)
{
    _cleanup_free_ char *program = xasprintf("%s/mgpu-gpu-test", kit->programs);
    const char *const argv[] = { program, "list", NULL };
    _cleanup_output_ struct child_output output = { 0 };
    char line[200];
    int r = child_run(argv, kit_left_ms(kit, kit->start_ms), &output);
    json_t *answer = json_last_line(output.out);
    text_last_line(output.err, line, sizeof(line));
    result_fact(result, "cuda", answer != NULL ? answer : json_null());
    if (r < 0 || output.is_late)
        kit->no_cuda =
            xstrdup(output.is_late ? "CUDA does not start in time" : "mgpu-gpu-test cannot run here");
    else if (output.status != 0)
        kit->no_cuda = xasprintf("CUDA does not start: %s",
            answer != NULL ? json_string_value(json_object_get(answer, "error")) : line);
    if (output.is_late)
        result_fail(result, "%s", kit->no_cuda);
    else if (kit->no_cuda != NULL)
        result_skip(result, "%s", kit->no_cuda);
    else
        compare_numbers(kit, json_object_get(answer, "gpus"), result);
}

const struct check kit_nvml_checks[] = {
    { "nvml", "each call of NVML", 100, NEED_NOTHING, check_nvml, RANK_FIRST },
    { "samples", "whole samples", 1000, NEED_NVML, check_samples, RANK_FIRST },
    { "numbers", "the numbers of the GPUs", 200, NEED_NVML, check_numbers, RANK_FIRST },
    { 0 },
};
