/* SPDX-License-Identifier: MIT */
/* Which kind enforces the share of a job on a node, and the notices that the job gets. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/notices.h"
#include "agent/launch/share.h"
#include "base/memory.h"
#include "wire/message.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define GIB (UINT64_C(1) << 30)

/* Chooses for a share of one GPU; the result is the kind, or a negative errno. */
static int choose(
    const char *share, bool has_mps, bool has_dmem, struct gpu_state *gpu, char **ret_why, struct error *err)
{
    struct share_ways ways = { .is_available = { [SHARE_TIME] = true } };
    struct record_list gpus = { gpu, 1 };
    struct launch_spec spec = { 0 };
    struct job_spec job = { .ask = { .share = xstrdup(share), .gpus = 1, .gpu_mem = GIB } };
    share_ways_refuse(&ways, SHARE_MPS, "not installed");
    share_ways_refuse(&ways, SHARE_DMEM, "old kernel");
    ways.is_available[SHARE_MPS] = has_mps;
    ways.is_available[SHARE_DMEM] = has_dmem;
    ways.regions = "drm/0000:03:00.0/vram0 25769803776\n";
    (void)gpu_grants_add(&spec.gpus, 0, gpu->uuid, 1, GIB);
    int r = share_choose(&ways, &gpus, &job, &spec, err);
    if (r == 0)
        r = (int)share_kind_from_name(spec.share);
    *ret_why = take_ptr(spec.share_why);
    assert_int_equal(spec.dmem.count, r == SHARE_DMEM ? 1 : 0);
    if (r == SHARE_DMEM)
        assert_string_equal(spec.dmem.items[0], "drm/0000:03:00.0/vram0 1073741824");
    record_clear(&launch_spec_record, &spec);
    free(job.ask.share);
    return r;
}

TEST(the_strongest_kind_that_works_on_the_gpu_is_used)
{
    char uuid[] = "GPU-a", pci[] = "0000:03:00.0", other[] = "0000:04:00.0";
    struct gpu_state seen = { .uuid = uuid, .pci = pci, .valid = GPU_PROCESSES, .vendor = GPU_VENDOR_NVIDIA };
    struct gpu_state amd = { .uuid = uuid, .valid = GPU_PROCESSES, .vendor = GPU_VENDOR_AMD };
    struct gpu_state uncharged = seen;
    uncharged.pci = other;
    struct gpu_state blind = { .uuid = uuid, .vendor = GPU_VENDOR_NVIDIA };
    const struct {
        const char *share;
        bool has_mps, has_dmem;
        struct gpu_state *gpu;
        int result;
        const char *text; // of the reason or the error
    } rows[] = {
        { NULL, true, true, &seen, SHARE_NONE, NULL },
        { "none", true, true, &seen, SHARE_NONE, NULL },
        { "auto", true, true, &seen, SHARE_DMEM, "the strongest kind" },
        { "auto", true, false, &seen, SHARE_MPS, "no dmem: old kernel" },
        { "auto", true, true, &uncharged, SHARE_MPS,
            "no dmem: the driver of the GPU does not charge its memory to cgroups" },
        { "dmem", true, true, &uncharged, -ENOTSUP, "does not charge its memory" },
        { "dmem", true, true, &seen, SHARE_DMEM, "requested" },
        { "auto", false, false, &seen, SHARE_TIME, "no dmem: old kernel; no mps: not installed" },
        { "auto", true, false, &amd, SHARE_TIME, "no dmem: old kernel; no mps: it needs GPUs of NVIDIA" },
        { "auto", false, false, &blind, -ENOTSUP, "does not report the memory of processes" },
        { "time", true, true, &seen, SHARE_TIME, "requested" },
        { "mps", true, true, &seen, SHARE_MPS, "requested" },
        { "mps", false, true, &seen, -ENOTSUP, "not installed" },
        { "mps", true, true, &amd, -ENOTSUP, "it needs GPUs of NVIDIA" },
        { "dmem", true, false, &seen, -ENOTSUP, "old kernel" },
        { "time", true, true, &blind, -ENOTSUP, "does not report the memory of processes" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        _cleanup_free_ char *why = NULL;
        int r = choose(rows[i].share, rows[i].has_mps, rows[i].has_dmem, rows[i].gpu, &why, &err);
        assert_int_equal(r, rows[i].result);
        if (r < 0)
            assert_non_null(strstr(err.message, rows[i].text));
        else if (rows[i].text == NULL)
            assert_null(why);
        else
            assert_string_equal(why, rows[i].text);
    }
}

TEST(whole_gpus_have_no_share)
{
    char uuid[] = "GPU-a", kind[] = "auto";
    struct gpu_state gpu = { .uuid = uuid, .valid = GPU_PROCESSES };
    struct record_list gpus = { &gpu, 1 };
    struct share_ways ways = { .is_available = { [SHARE_TIME] = true } };
    struct job_spec job = { .ask = { .share = kind } };
    struct launch_spec spec = { 0 };
    (void)gpu_grants_add(&spec.gpus, 0, uuid, 0, 0);
    assert_int_equal(share_choose(&ways, &gpus, &job, &spec, NULL), 0);
    assert_null(spec.share);
    record_clear(&launch_spec_record, &spec);
}

TEST(notices_are_lines_in_a_file_of_bounded_size)
{
    char dir[] = "/tmp/mgpu-notices-XXXXXX", text[1024];
    struct spool_id id = { .job = 7, .attempt = 1 };
    struct error err;
    struct stat st;
    assert_non_null(mkdtemp(dir));
    _cleanup_free_ char *path = notices_path(dir, &id);
    assert_true(notices_add(path, 0, "gpu_mem", "no file yet") < 0);
    assert_int_equal(notices_make(dir, &id, geteuid(), getegid(), geteuid() == 0, &err), 0);
    assert_int_equal(notices_make(dir, &id, geteuid(), getegid(), geteuid() == 0, &err), 0);
    assert_int_equal(notices_add(path, 1000, "gpu_mem", "too much"), 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_string_equal(text, "1970-01-01T00:00:01.000Z gpu_mem too much\n");
    (void)fclose(file);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    int r = 0;
    for (size_t i = 0; r == 0 && i < 2 * NOTICES_MAX / sizeof(text); i++)
        r = notices_add(path, 0, "gpu_mem", text);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= (off_t)NOTICES_MAX);
    assert_int_equal(st.st_mode & 0222, 0);
    assert_int_equal(notices_remove(dir, &id), 0);
    assert_int_equal(notices_remove(dir, &id), 0);
    _cleanup_free_ char *folder = xasprintf("%s/notices", dir);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(dir), 0);
}
