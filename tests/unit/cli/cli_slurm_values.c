/* SPDX-License-Identifier: MIT */
/* Values of Slurm's options: times, sizes, GPUs, moments and names of files. */
#include <string.h>

#include "base/memory.h"
#include "cli/submit/slurm_values.h"
#include "unit_test.h"

TEST(times_are_minutes_unless_they_say_otherwise)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = { { "30", 1800 }, { "30:10", 1810 }, { "1:30:10", 5410 }, { "2-0", 172800 },
        { "1-12:30", 131400 }, { "1-1:1:1", 90061 }, { "0", SLURM_NO_LIMIT }, { "UNLIMITED", SLURM_NO_LIMIT },
        { "0:30", 30 }, { "0:00:00", SLURM_NO_LIMIT }, { "00:00", SLURM_NO_LIMIT }, { "0-0", SLURM_NO_LIMIT },
        { "0-00:00:00", SLURM_NO_LIMIT }, { "00:00:00", SLURM_NO_LIMIT }, { "infinite", SLURM_NO_LIMIT },
        { "-1", SLURM_NO_LIMIT } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t seconds = 0;
        assert_int_equal(slurm_parse_time("--time", rows[i].text, &seconds, NULL), 0);
        assert_int_equal(seconds, rows[i].seconds);
    }
}

TEST(sizes_are_mebibytes_unless_they_say_otherwise)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = { { "100", 100ULL << 20 }, { "4G", 4ULL << 30 }, { "64K", 64ULL << 10 }, { "1TB", 1ULL << 40 },
        { "0", 0 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = 1;
        assert_int_equal(slurm_parse_memory("--mem", rows[i].text, &bytes, NULL), 0);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

TEST(gpus_have_a_number_and_perhaps_a_type)
{
    static const struct {
        const char *text;
        int64_t count;
        const char *model;
    } rows[] = { { "gpu", 1, NULL }, { "gpu:2", 2, NULL }, { "gpu:h200:3", 3, "h200" },
        { "gres:gpu:1", 1, NULL }, { "none", 0, NULL }, { "gpu:a100", 1, "a100" },
        { "gpu:2,craynetwork:0", 2, NULL }, { "lscratch:00", 0, NULL },
        { "gpu:a100:1,gpu:A100:2", 3, "a100" }, { "gpu:1,gpu:a100:2", 3, "a100" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t count = -1;
        _cleanup_free_ char *model = NULL;
        assert_int_equal(slurm_parse_gres(rows[i].text, &count, &model, NULL), 0);
        assert_int_equal(count, rows[i].count);
        assert_true((model == NULL) == (rows[i].model == NULL));
        if (model != NULL)
            assert_string_equal(model, rows[i].model);
    }
}

TEST(what_is_no_value_is_refused)
{
    static const char *const times[] = { "", "x", "1:2:3:4", "-2", "1-", "99999999999999999999" };
    static const char *const sizes[] = { "", "x", "4Q", "-1", "4GX", "1.5G", "99999999999999999999" };
    static const char *const gres[] = { "fpga:1", "gpu:2,shard:1", "gpu:x:y", "gpu:-1", "gpu:1025",
        "gpu:a100:1,gpu:v100:1", "lscratch:10", "lscratch:", ":0", "", "gpu:1,", "lscratch" };
    struct error err = { 0 };
    int64_t number = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        assert_true(slurm_parse_time("--time", times[i], &number, &err) < 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_true(slurm_parse_memory("--mem", sizes[i], &bytes, &err) < 0);
    for (size_t i = 0; i < sizeof(gres) / sizeof(gres[0]); i++) {
        _cleanup_free_ char *model = NULL;
        assert_true(slurm_parse_gres(gres[i], &number, &model, &err) < 0);
    }
}

TEST(names_become_ours)
{
    static const char *const names[][2] = { { "%x-%j_%4a.%N%%", "%n-%j_%4a.%h%%" }, { "a%J", "a%j" },
        { "%t%n", "%r%r" }, { "\\%j", "%%j" }, { "100%", "100%" }, { "%h", "%%h" } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_free_ char *text = slurm_path(names[i][0]);
        assert_string_equal(text, names[i][1]);
    }
}

TEST(indexes_are_in_order_and_each_once)
{
    static const char *const rows[][2] = { { "[1-3]", "1-3" }, { "1,1,2", "1-2" }, { "1-3,2-4", "1-4" },
        { "5,1-2", "1-2,5" }, { "0-9:2%3", "0-9:2%3" }, { "[0-3]%2", "0-3%2" }, { "3,1%1", "1,3%1" },
        { "x", "x" }, { "", "" }, { "1-", "1-" }, { "9-1", "9-1" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *text = slurm_array_indexes(rows[i][0]);
        assert_string_equal(text, rows[i][1]);
    }
}
