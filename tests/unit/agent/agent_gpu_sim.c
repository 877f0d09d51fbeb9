/* SPDX-License-Identifier: MIT */
#include "agent/gpu/gpu.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

TEST(simulated_gpus_are_complete_and_stable)
{
    struct gpu_spec spec;
    void *sim;
    assert_int_equal(gpu_spec_parse("sim:3x24G:Toy", &spec, NULL), 0);
    for (int round = 0; round < 2; round++) {
        struct gpu_state gpu = { 0 };
        assert_int_equal(gpu_sim.open(&spec, NULL, &sim, NULL), 0);
        assert_int_equal(gpu_sim.count(sim), 3);
        gpu_sim.describe(sim, 2, &gpu);
        gpu_sim.sample(sim, 2, &gpu);
        assert_int_equal(gpu.index, 2);
        assert_string_equal(gpu.uuid, "GPU-sim-2");
        assert_string_equal(gpu.model, "Toy");
        assert_string_equal(gpu.pci, "0000:03:00.0");
        assert_int_equal(gpu.memory_bytes, UINT64_C(24) << 30);
        assert_int_equal(gpu.valid, 2 * GPU_PROCESSES - 1); // every value
        assert_int_equal(gpu.vendor, GPU_VENDOR_SIMULATED);
        assert_int_equal(gpu.minor, -1);
        assert_int_equal(gpu.render_minor, -1);
        assert_in_range(gpu.power_mw, 1, gpu.power_limit_mw);
        uint64_t energy_mj = gpu.energy_mj;
        gpu_sim.sample(sim, 2, &gpu);
        assert_true(gpu.energy_mj > energy_mj);
        assert_int_equal(gpu.processes.count, 0);
        assert_true(gpu.memory_used_bytes < gpu.memory_bytes);
        assert_in_range(gpu.temperature_c, 20, 90);
        assert_int_equal(gpu.is_lost, 0);
        record_clear(&gpu_state_record, &gpu);
        gpu_sim.close(sim);
    }
}

TEST(the_none_backend_has_no_gpus)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_NONE };
    void *none;
    assert_int_equal(gpu_none.open(&spec, NULL, &none, NULL), 0);
    assert_int_equal(gpu_none.count(none), 0);
    gpu_none.close(none);
}
