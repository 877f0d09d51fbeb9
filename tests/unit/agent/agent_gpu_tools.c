/* SPDX-License-Identifier: MIT */
/*
 * mgpu-gpu-test on a CUDA library in which one function hangs, fails or is missing: each run ends in time,
 * with the reason. Each run has a folder of its own with the stand-in (argv[2]) and its state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/tools.h"
#include "base/memory.h"
#include "unit_test.h"

#define UUID       "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define GPU_LINE   "gpu 3b 64 00112233445566778899aabbccddeeff NVIDIA Stand-in\n"
#define HANG_MS    4000
#define PATIENT_MS 120000
#define RUNS_MAX   40U

enum { SCRUB = 1, HEALTH = 2, OPTIONAL = 4, MAY_FAIL = 8 };

/* Which verb calls it; MAY_FAIL: its result changes nothing. */
static const struct {
    const char *name;
    unsigned flags;
} functions[] = {
    { "cuInit", SCRUB | HEALTH },
    { "cuDriverGetVersion", SCRUB | HEALTH | MAY_FAIL },
    { "cuDeviceGet", SCRUB | HEALTH },
    { "cuDeviceGetName", HEALTH },
    { "cuDeviceGetUuid_v2", HEALTH | OPTIONAL | MAY_FAIL },
    { "cuDeviceGetPCIBusId", HEALTH | OPTIONAL | MAY_FAIL },
    { "cuDeviceTotalMem_v2", SCRUB | HEALTH | MAY_FAIL },
    { "cuDeviceGetAttribute", SCRUB | HEALTH | MAY_FAIL },
    { "cuDevicePrimaryCtxRetain", SCRUB | HEALTH },
    { "cuDevicePrimaryCtxRelease_v2", SCRUB | HEALTH | MAY_FAIL },
    { "cuCtxSetCurrent", SCRUB | HEALTH },
    { "cuMemGetInfo_v2", SCRUB },
    { "cuMemAlloc_v2", SCRUB | HEALTH },
    { "cuMemFree_v2", SCRUB | HEALTH | MAY_FAIL },
    { "cuMemAllocHost_v2", HEALTH },
    { "cuMemFreeHost", HEALTH | MAY_FAIL },
    { "cuMemcpyHtoD_v2", SCRUB | HEALTH },
    { "cuMemcpyDtoH_v2", SCRUB | HEALTH },
    { "cuMemcpyDtoD_v2", HEALTH },
    { "cuModuleLoadData", SCRUB | HEALTH },
    { "cuModuleGetFunction", SCRUB | HEALTH },
    { "cuLaunchKernel", SCRUB | HEALTH },
    { "cuEventCreate", HEALTH },
    { "cuEventRecord", HEALTH },
    { "cuEventSynchronize", HEALTH },
    { "cuEventElapsedTime", HEALTH },
    { "cuEventDestroy_v2", HEALTH | MAY_FAIL },
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const struct {
    const char *name;
    unsigned flag;
} verbs[] = { { "scrub", SCRUB }, { "health", HEALTH } };

static const char *program, *standin;
static char place[] = "/tmp/mgpu-tools-XXXXXX";

struct run {
    struct batch *batch;
    const char *function; // NULL: nothing is wrong
    struct gpu_tools *tools;
    char *folder, *output, *why;
    bool is_over;
};

struct batch {
    struct event_base *base;
    struct run runs[RUNS_MAX];
    size_t count, n_over;
};

static void on_end(void *arg, const char *uuid, const char *output, const char *why)
{
    struct run *run = arg;
    assert_string_equal(uuid, UUID);
    assert_false(run->is_over);
    run->is_over = true;
    run->output = xstrdup(output);
    run->why = xstrdup(why);
    if (++run->batch->n_over == run->batch->count)
        (void)event_base_loopbreak(run->batch->base);
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* The library without that name: the first letter is another, so that the dynamic linker does not find it. */
static void write_library_without(const char *path, const char *function)
{
    static char bytes[1 << 20];
    char name[80];
    FILE *file = fopen(standin, "re");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    assert_true(length > 0 && length < sizeof(bytes));
    int n = snprintf(name, sizeof(name), "%c%s", '\0', function);
    size_t n_found = 0;
    for (char *at = bytes; (at = memmem(at, (size_t)(bytes + length - at), name, (size_t)n + 1)) != NULL;
         at++) {
        at[1] = 'x';
        n_found++;
    }
    assert_true(n_found > 0);
    write_file(path, bytes, length);
}

/* `word` "hang", "fail" or NULL: the function is missing. */
static void add(
    struct batch *batch, const char *verb, const char *word, const char *function, int64_t timeout_ms)
{
    assert_true(batch->count < RUNS_MAX);
    struct run *run = &batch->runs[batch->count++];
    run->batch = batch;
    run->function = function;
    run->folder = xasprintf("%s/%zu", place, batch->count);
    assert_int_equal(mkdir(run->folder, 0700), 0);
    _cleanup_free_ char *library = xasprintf("%s/libcuda.so.1", run->folder);
    _cleanup_free_ char *path = xasprintf("%s/cuda.state", run->folder);
    _cleanup_free_ char *state = function == NULL || word == NULL
                                     ? xstrdup(GPU_LINE)
                                     : xasprintf(GPU_LINE "%s %s 999\n", word, function);
    if (function != NULL && word == NULL)
        write_library_without(library, function);
    else
        assert_int_equal(symlink(standin, library), 0);
    write_file(path, state, strlen(state));
    run->tools = gpu_tools_new(batch->base, program, library);
    gpu_tools_run(run->tools, verb, UUID, timeout_ms, on_end, run);
}

static void begin(struct batch *batch)
{
    *batch = (struct batch){ .base = event_base_new() };
}

static void finish(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct run *run = &batch->runs[i];
        _cleanup_free_ char *command = xasprintf("rm -r '%s'", run->folder);
        gpu_tools_free(run->tools);
        assert_int_equal(system(command), 0);
        free(run->folder);
        free(run->output);
        free(run->why);
    }
    event_base_free(batch->base);
}

/* All functions of the verb without a flag of `but`, at the same time. */
static void run_all(struct batch *batch, size_t verb, const char *word, unsigned but, int64_t timeout_ms)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        if ((functions[i].flags & verbs[verb].flag) != 0 && (functions[i].flags & but) == 0)
            add(batch, verbs[verb].name, word, functions[i].name, timeout_ms);
    (void)event_base_dispatch(batch->base);
    assert_int_equal(batch->n_over, batch->count);
}

TEST(a_library_that_works_has_results)
{
    for (size_t verb = 0; verb < sizeof(verbs) / sizeof(verbs[0]); verb++) {
        struct batch batch;
        begin(&batch);
        add(&batch, verbs[verb].name, NULL, NULL, PATIENT_MS);
        (void)event_base_dispatch(batch.base);
        assert_null(batch.runs[0].why);
        assert_non_null(strstr(batch.runs[0].output, "\"result\":\"passed\""));
        finish(&batch);
    }
}

TEST(a_function_that_hangs_is_given_up_in_time)
{
    for (size_t verb = 0; verb < sizeof(verbs) / sizeof(verbs[0]); verb++) {
        struct batch batch;
        begin(&batch);
        run_all(&batch, verb, "hang", 0, HANG_MS);
        for (size_t i = 0; i < batch.count; i++) {
            print_message("%s: %s\n", batch.runs[i].function, batch.runs[i].why);
            assert_string_equal(batch.runs[i].why, "it did not finish within 4 s");
        }
        finish(&batch);
    }
}

TEST(a_function_that_fails_is_named)
{
    for (size_t verb = 0; verb < sizeof(verbs) / sizeof(verbs[0]); verb++) {
        struct batch batch;
        begin(&batch);
        run_all(&batch, verb, "fail", MAY_FAIL, PATIENT_MS);
        for (size_t i = 0; i < batch.count; i++) {
            print_message("%s: %s\n", batch.runs[i].function, batch.runs[i].why);
            assert_non_null(batch.runs[i].why);
            assert_non_null(strstr(batch.runs[i].why, "CUDA_ERROR_UNKNOWN"));
        }
        finish(&batch);
    }
}

TEST(a_required_function_that_is_missing_is_named)
{
    for (size_t verb = 0; verb < sizeof(verbs) / sizeof(verbs[0]); verb++) {
        struct batch batch;
        begin(&batch);
        run_all(&batch, verb, NULL, OPTIONAL, PATIENT_MS);
        for (size_t i = 0; i < batch.count; i++) {
            print_message("%s: %s\n", batch.runs[i].function, batch.runs[i].why);
            assert_non_null(batch.runs[i].why);
            assert_non_null(strstr(batch.runs[i].why, "libcuda.so.1 has no "));
        }
        finish(&batch);
    }
}

TEST(functions_of_newer_drivers_may_be_missing)
{
    struct batch batch;
    begin(&batch);
    for (size_t i = 0; i < FUNCTIONS; i++)
        if ((functions[i].flags & OPTIONAL) != 0)
            add(&batch, "health", NULL, functions[i].name, PATIENT_MS);
    (void)event_base_dispatch(batch.base);
    for (size_t i = 0; i < batch.count; i++)
        assert_null(batch.runs[i].why);
    finish(&batch);
}

TEST(a_library_that_is_none_is_reported)
{
    struct batch batch;
    begin(&batch);
    add(&batch, "scrub", NULL, NULL, PATIENT_MS);
    gpu_tools_kill(batch.runs[0].tools, UUID);
    (void)event_base_dispatch(batch.base);
    assert_string_equal(batch.runs[0].why, "it was interrupted");
    _cleanup_free_ char *library = xasprintf("%s/libcuda.so.1", batch.runs[0].folder);
    assert_int_equal(unlink(library), 0);
    write_file(library, "no library", 10);
    batch.n_over = 0;
    batch.runs[0].is_over = false;
    free(take_ptr(batch.runs[0].why));
    free(take_ptr(batch.runs[0].output));
    gpu_tools_run(batch.runs[0].tools, "scrub", UUID, PATIENT_MS, on_end, &batch.runs[0]);
    (void)event_base_dispatch(batch.base);
    assert_non_null(strstr(batch.runs[0].why, "cannot load "));
    finish(&batch);
}

int main(int argc, char **argv)
{
    if (argc < 3 || mkdtemp(place) == NULL)
        return EXIT_FAILURE;
    program = argv[1];
    standin = argv[2];
    int failed = unit_tests_run(NULL, NULL);
    (void)rmdir(place);
    return failed;
}
