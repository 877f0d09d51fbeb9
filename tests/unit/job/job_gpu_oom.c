/* SPDX-License-Identifier: MIT */
/* Which outputs report that GPU memory is used up, and the request of the next attempt. */
#include <stdlib.h>

#include "job/gpu_oom.h"
#include "unit_test.h"

#define GIB (1ULL << 30)

TEST(last_report_of_the_output_is_the_proof)
{
    static const struct {
        const char *tail, *line;
    } rows[] = {
        { "", NULL },
        { "CUDA is fine\nout of memory\n", NULL },
        { "a\nRuntimeError: CUDA out of memory. Tried 2 GiB\nb\n",
            "RuntimeError: CUDA out of memory. Tried 2 GiB" },
        { "CUDA out of memory: 1\nCUDA out of memory: 2", "CUDA out of memory: 2" },
        { "jaxlib: RESOURCE_EXHAUSTED: Out of memory\n", "jaxlib: RESOURCE_EXHAUSTED: Out of memory" },
        { "CUDA out of memory\x1b[31m\n", "CUDA out of memory\\x1b[31m" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *line = gpu_oom_line(rows[i].tail);
        if (rows[i].line == NULL)
            assert_null(line);
        else
            assert_string_equal(line, rows[i].line);
        free(line);
    }
}

/* As users have reported them for these frameworks. */
TEST(reports_of_frameworks_are_recognised)
{
    static const char *const of_gpus[] = {
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total "
        "capacty of 6.00 "
        "GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 31.75 GiB total capacity; "
        "612.33 MiB "
        "already allocated; 14.75 MiB free; 622.00 MiB reserved in total by PyTorch)",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "4770354232 "
        "bytes.",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB "
        "(3206250496B) on device ordinal 0",
        "RuntimeError: Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) on device "
        "ordinal 0",
        "Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate "
        "5520758552 bytes.",
        "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with "
        "shape[64,2016,9,9] and type "
        "float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "failed to allocate 32.00M (33554432 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    };
    static const char *const others[] = {
        "ResourceExhaustedError: OOM when allocating tensor with shape[500000,50000] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.37GiB with "
        "freed_by_count=0. "
        "The caller indicates that this is not a failure",
        "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Read requests'",
        "MemoryError: Unable to allocate 14.9 GiB for an array with shape (2000000000,) and data type "
        "float64",
    };
    for (size_t i = 0; i < sizeof(of_gpus) / sizeof(of_gpus[0]); i++) {
        char *line = gpu_oom_line(of_gpus[i]);
        assert_non_null(line);
        free(line);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_null(gpu_oom_line(others[i]));
}

TEST(factor_and_bound_are_read_or_refused)
{
    static const char *const bad[] = { "", "x", "1", "1.05", "11", "nan", "-2", "1.5,", "1.5,80G",
        "1.5,max=", "1.5,max=x", "x1.5,max=1G,max=2G" };
    struct gpu_oom_retry retry;
    struct error err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_true(gpu_oom_parse_retry(bad[i], &retry, &err) < 0);
    assert_int_equal(gpu_oom_parse_retry("x1.5,max=80G", &retry, &err), 0);
    assert_int_equal(retry.percent, 150);
    assert_int_equal(retry.max_bytes, 80 * GIB);
    assert_int_equal(gpu_oom_parse_retry("2", &retry, &err), 0);
    assert_int_equal(retry.percent, 200);
    assert_int_equal(retry.max_bytes, 0);
}

TEST(next_try_asks_for_more_until_it_has_the_whole_gpu)
{
    static const struct {
        const char *retry;
        uint64_t gpu_mem;
        uint32_t share, gpus, nodes;
        uint64_t peak, size; // 0: not known
        bool is_larger;
        uint64_t then_mem;
        uint32_t then_share;
    } rows[] = {
        { "x1.5", 8 * GIB, 0, 1, 0, 0, 0, true, 12 * GIB, 0 },
        { "x1.5", 8 * GIB, 0, 1, 0, 10 * GIB, 24 * GIB, true, 15 * GIB, 0 }, // from what it used
        { "x2", 8 * GIB, 0, 1, 0, 12 * GIB, 24 * GIB, true, 0, 0 },          // the whole GPU
        { "x2,max=12G", 8 * GIB, 0, 1, 0, 0, 24 * GIB, true, 12 * GIB, 0 },  // its bound
        { "x1.5,max=80G", 20 * GIB, 0, 1, 0, 0, 24 * GIB, true, 0, 0 },      // within which the whole GPU is
        { "x2,max=12G", 12 * GIB, 0, 1, 0, 0, 24 * GIB, false, 0, 0 },       // which it has already
        { "x1.5", 0, 500, 1, 0, 0, 24 * GIB, true, 0, 750 },
        { "x3", 0, 500, 1, 0, 0, 24 * GIB, true, 0, 0 }, // the whole GPU
        { "x1.5,max=12G", 0, 500, 1, 0, 0, 24 * GIB, false, 0, 0 },
        { "x1.5", 0, 0, 1, 0, 24 * GIB, 24 * GIB, false, 0, 0 }, // it had the whole GPU
        { "x1.5", 8 * GIB, 0, 1, 2, 0, 0, false, 0, 0 },         // several nodes
        { NULL, 8 * GIB, 0, 1, 0, 0, 0, false, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct job_usage usage = { .valid = USAGE_GPU_MEMORY, .gpu_memory_peak = rows[i].peak };
        const struct job_ask ask = { .gpus = rows[i].gpus,
            .gpu_mem = rows[i].gpu_mem,
            .gpu_share = rows[i].share,
            .nodes = rows[i].nodes,
            .retry_oom = (char *)(uintptr_t)rows[i].retry };
        struct job_ask larger;
        bool is_larger = gpu_oom_enlarge(&ask, rows[i].peak != 0 ? &usage : NULL, rows[i].size, &larger);
        assert_int_equal(is_larger, rows[i].is_larger);
        if (!is_larger)
            continue;
        assert_in_range(
            larger.gpu_mem, rows[i].then_mem - (rows[i].then_mem > 0 ? 200 : 0), rows[i].then_mem);
        assert_int_equal(larger.gpu_share, rows[i].then_share);
        assert_int_equal(larger.gpus, 1);
        job_ask_clear(&larger);
    }
}
