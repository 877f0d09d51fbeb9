/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "wire/gpu_spec.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

TEST(the_words_and_a_shape_are_read)
{
    struct gpu_spec spec;
    struct error err = { 0 };
    assert_int_equal(gpu_spec_parse("auto", &spec, &err), 0);
    assert_int_equal(spec.kind, GPU_SPEC_AUTO);
    assert_int_equal(gpu_spec_parse("none", &spec, &err), 0);
    assert_int_equal(spec.kind, GPU_SPEC_NONE);
    assert_int_equal(gpu_spec_parse("nvml", &spec, &err), 0);
    assert_int_equal(spec.kind, GPU_SPEC_VENDOR);
    assert_int_equal(spec.vendor, GPU_VENDOR_NVIDIA);
    assert_int_equal(gpu_spec_parse("amd", &spec, &err), 0);
    assert_int_equal(spec.kind, GPU_SPEC_VENDOR);
    assert_int_equal(spec.vendor, GPU_VENDOR_AMD);
    assert_int_equal(gpu_spec_parse("sim:8x24G", &spec, &err), 0);
    assert_int_equal(spec.kind, GPU_SPEC_SIM);
    assert_int_equal(spec.count, 8);
    assert_int_equal(spec.memory_bytes, UINT64_C(24) << 30);
    assert_string_equal(spec.model, "Simulated GPU");
}

TEST(a_model_may_hold_colons_and_blanks)
{
    struct gpu_spec spec;
    assert_int_equal(gpu_spec_parse("sim:2x80G:NVIDIA H100: 80GB", &spec, NULL), 0);
    assert_string_equal(spec.model, "NVIDIA H100: 80GB");
}

TEST(bad_text_gets_one_sentence_and_a_hint)
{
    static const char *const texts[] = { "", "Auto", "sim", "sim:", "sim:8", "sim:x24G", "sim:8x",
        "sim:-1x24G", "sim:257x24G", "sim:99999999999999999999x1G", "sim:8x0G", "sim:8x9999999999T",
        "sim:8x24G:", "sim:8x24Gfoo", "sim:8x24G:a\nb", "nvidia" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gpu_spec spec = { .count = 77 };
        struct error err = { 0 };
        assert_true(gpu_spec_parse(texts[i], &spec, &err) < 0);
        assert_true(err.message[0] != '\0');
        assert_non_null(strstr(err.hint, "sim:8x24G"));
        assert_int_equal(spec.count, 77);
    }
}
