/* SPDX-License-Identifier: MIT */
/* Which requests may have their share enforced, and how much a share is. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/share.h"
#include "unit_test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static int check(const char *share, uint64_t gpu_mem, uint32_t gpu_share, struct error *err)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    job_ask_init(&ask);
    ask.share = xstrdup(share);
    ask.gpu_mem = gpu_mem;
    ask.gpu_share = gpu_share;
    int r = job_ask_validate(&ask, err);
    return r;
}

TEST(only_shares_are_enforced_and_only_by_known_kinds)
{
    static const char *const good[] = { "auto", "dmem", "mps", "time" };
    static const char *const bad[] = { "", "Auto", "mps ", "0.5", "mig", "nan" };
    struct error err;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(check(good[i], 8 * GIB, 0, &err), 0);
        assert_int_equal(check(good[i], 0, 500, &err), 0);
        assert_true(check(good[i], 0, 0, &err) < 0);
        assert_non_null(strstr(err.message, "whole GPUs"));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_true(check(bad[i], 8 * GIB, 0, &err) < 0);
    assert_int_equal(check("none", 0, 0, &err), 0);
    assert_int_equal(check(NULL, 0, 0, &err), 0);
}

TEST(a_share_is_exact_to_a_mebibyte)
{
    static const struct {
        uint64_t memory;
        uint32_t share, slot;
        uint64_t gpu, bytes;
        uint32_t percent;
    } rows[] = {
        { 12 * GIB, 0, 1, 24 * GIB, 12 * GIB, 100 }, { 12 * GIB + 1, 0, 1, 24 * GIB, 12 * GIB, 100 },
        { 12 * GIB + MIB, 0, 1, 24 * GIB, 12 * GIB + MIB, 100 }, { 0, 500, 1, 24 * GIB, 12 * GIB, 50 },
        { 0, 1, 1, 24 * GIB, 24 * MIB, 1 }, { 0, 333, 2, 143771 * MIB, 47875 * MIB, 34 },
        { 8 * GIB, 500, 1, 24 * GIB, 8 * GIB, 50 }, { 0, 0, 0, 24 * GIB, 0, 100 }, // the whole GPU
        { 0, 500, 1, 0, 0, 50 },                                                   // of unknown size
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpu_grant grant = { .memory = rows[i].memory, .share = rows[i].share, .slot = rows[i].slot };
        assert_int_equal(share_bytes(&grant, rows[i].gpu), rows[i].bytes);
        assert_int_equal(share_percent(&grant), rows[i].percent);
    }
}

TEST(a_region_belongs_to_the_device_whose_address_it_contains)
{
    static const char regions[] =
        "drm/0000:03:00.0/vram0 8514437120\ndrm/0000:3b:00.0/stolen\nnv.0000:3B:00.0.0 1\n";
    static const struct {
        const char *pci, *region;
    } rows[] = {
        { "0000:03:00.0", "drm/0000:03:00.0/vram0" },
        { "0000:3b:00.0", "nv.0000:3B:00.0.0" },
        { "0000:81:00.0", NULL },
        { "000:03:00.0", NULL },
        { "", NULL },
        { NULL, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *region = share_region(regions, rows[i].pci);
        if (rows[i].region == NULL)
            assert_null(region);
        else
            assert_string_equal(region, rows[i].region);
    }
    assert_null(share_region(NULL, "0000:03:00.0"));
    assert_null(share_region("", "0000:03:00.0"));
}

TEST(the_strongest_available_kind_is_chosen_and_the_others_are_explained)
{
    struct share_ways ways = { 0 };
    assert_int_equal(share_ways_strongest(&ways), SHARE_NONE);
    ways.is_available[SHARE_TIME] = ways.is_available[SHARE_MPS] = ways.is_available[SHARE_DMEM] = true;
    assert_int_equal(share_ways_strongest(&ways), SHARE_DMEM);
    assert_null(share_ways_text(&ways, SHARE_DMEM));
    share_ways_refuse(&ways, SHARE_DMEM, "old kernel");
    assert_int_equal(share_ways_strongest(&ways), SHARE_MPS);
    share_ways_refuse(&ways, SHARE_MPS, "not installed");
    assert_int_equal(share_ways_strongest(&ways), SHARE_TIME);
    _cleanup_free_ char *text = share_ways_text(&ways, SHARE_TIME);
    assert_string_equal(text, "no dmem: old kernel; no mps: not installed");
}
