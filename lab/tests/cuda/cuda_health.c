/* SPDX-License-Identifier: MIT */
/* The health test on a GPU that a library stands in for (tests/standin/cuda.c, hip.c). */
#include "lab/cuda/health.h"
#include "unit_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPU "gpu 3b 128 00112233445566778899aabbccddeeff Stand-in\n"

static char state_path[] = "/tmp/mgpu-cuda-XXXXXX";

static void say(const char *text)
{
    FILE *file = fopen(state_path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct cuda_api load(enum gpu_runtime runtime)
{
    struct cuda_api api;
    struct error err = { 0 };
    assert_int_equal(cuda_api_load(runtime, NULL, &api, &err), 0);
    assert_int_equal(api.init(0), CUDA_SUCCESS);
    return api;
}

static int test_with(
    enum gpu_runtime runtime, const char *state, struct cuda_health *health, struct error *err)
{
    struct cuda_gpu gpu;
    say(GPU);
    struct cuda_api api = load(runtime);
    say(state);
    int r = cuda_gpu_open(&api, 0, &gpu, err);
    if (r == 0) {
        r = cuda_health_test(&gpu, (uint64_t)64 << 20, health, err);
        cuda_gpu_close(&gpu);
    }
    cuda_api_unload(&api);
    return r;
}

static int test(const char *state, struct cuda_health *health, struct error *err)
{
    return test_with(RUNTIME_CUDA, state, health, err);
}

TEST(a_good_gpu_passes_with_all_figures)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test(GPU, &health, &err), 0);
    assert_true(cuda_health_is_right(&health));
    assert_int_equal(health.tested_bytes, (uint64_t)64 << 20);
    assert_true(health.to_gpu_gb_per_s > 0 && health.from_gpu_gb_per_s > 0 && health.on_gpu_gb_per_s > 0 &&
                health.multiply_gflop_per_s > 0);
}

/* One word in each of eight blocks, for the pattern and for its complement; the product has one too. */
TEST(wrong_words_are_counted_and_located)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test(GPU "corrupt 1000\n", &health, &err), 0);
    assert_false(cuda_health_is_right(&health));
    assert_int_equal(health.wrong_words, 16);
    assert_int_equal(health.first_wrong, 4000);
    assert_int_equal(health.wrong_products, 1);
}

TEST(a_failing_call_is_named_with_its_error)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test(GPU "fail cuMemcpyDtoD_v2 999\n", &health, &err), -5);
    assert_string_equal(err.message, "a copy failed: CUDA_ERROR_UNKNOWN (999)");
}

TEST(ptx_that_is_refused_is_an_error)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test(GPU "fail cuModuleLoadData 218\n", &health, &err), -5);
    assert_string_equal(err.message, "cuModuleLoadData failed: CUDA_ERROR_INVALID_PTX (218)");
}

TEST(less_memory_than_asked_is_tested_where_others_use_it)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test(GPU "used 0 80\n", &health, &err), 0);
    assert_int_equal(health.tested_bytes, (uint64_t)40 << 20); // 48 MiB are free, and 8 of them are spared
}

TEST(gpus_are_described_as_nvml_names_them)
{
    struct cuda_description about;
    struct error err = { 0 };
    say(GPU);
    struct cuda_api api = load(RUNTIME_CUDA);
    assert_int_equal(cuda_describe(&api, 0, &about, &err), 0);
    assert_string_equal(about.uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    assert_string_equal(about.pci, "0000:3b:00.0");
    assert_string_equal(about.name, "Stand-in");
    assert_int_equal(about.memory_bytes, (uint64_t)128 << 20);
    assert_int_equal(cuda_describe(&api, 1, &about, &err), -5);
    cuda_api_unload(&api);
}

TEST(an_amd_gpu_is_used_through_hip)
{
    struct cuda_health health = { 0 };
    struct error err = { 0 };
    assert_int_equal(test_with(RUNTIME_HIP, GPU "corrupt 1000\n", &health, &err), 0);
    assert_int_equal(health.wrong_words, 16);
    assert_int_equal(health.wrong_products, 1);
    assert_int_equal(test_with(RUNTIME_HIP, GPU, &health, &err), 0);
    assert_true(cuda_health_is_right(&health));
}

TEST(failures_of_hip_have_its_names)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        { "fail cuMemAlloc_v2 2\n", "hipMalloc failed: hipErrorOutOfMemory (2)" },
        { "fail hiprtcCompileProgram 6\n",
            "hiprtcCompileProgram failed (6): Error: the stand-in does not know the GPU." },
        { "fail cuModuleLoadData 209\n", "hipModuleLoadData failed: hipErrorUnknown (209)" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cuda_health health = { 0 };
        struct error err = { 0 };
        char lines[128];
        (void)snprintf(lines, sizeof(lines), GPU "%s", cases[i].line);
        assert_int_equal(test_with(RUNTIME_HIP, lines, &health, &err), -5);
        assert_string_equal(err.message, cases[i].message);
    }
}

/* ROCm's UUID is the text that ROCR_VISIBLE_DEVICES takes. */
TEST(an_amd_gpu_has_the_uuid_that_mgpu_has_for_it)
{
    struct cuda_description about;
    struct error err = { 0 };
    say(GPU);
    struct cuda_api api = load(RUNTIME_HIP);
    assert_int_equal(cuda_describe(&api, 0, &about, &err), 0);
    assert_string_equal(about.uuid, "GPU-0011223344556677");
    assert_int_equal(about.major, 9);
    cuda_api_unload(&api);
}

TEST(a_missing_library_is_reported)
{
    struct cuda_api api;
    struct error err = { 0 };
    assert_int_equal(cuda_api_load(RUNTIME_CUDA, "/nowhere/libcuda.so.1", &api, &err), -19);
    assert_non_null(strstr(err.message, "/nowhere/libcuda.so.1"));
}

int main(void)
{
    int fd = mkstemp(state_path);
    if (fd < 0 || setenv("MGPU_CUDA_STANDIN", state_path, 1) < 0)
        return EXIT_FAILURE;
    (void)close(fd);
    int failed = unit_tests_run(NULL, NULL);
    (void)unlink(state_path);
    return failed;
}
