/* SPDX-License-Identifier: MIT */
/*
 * Simulated GPUs: for evaluation, for tests, and for machines without one. They have stable UUIDs and
 * plausible values that change with each sample; a job gets CUDA_VISIBLE_DEVICES but no device.
 */
#include "agent/gpu/gpu.h"

#include <stdio.h>

#include "base/gpu_vendor.h"
#include "base/memory.h"

#define IDLE_MEMORY_BYTES (UINT64_C(3) << 20) // memory that a driver uses on an idle GPU
#define IDLE_POWER_MW     25000U
#define IDLE_CELSIUS      31U
#define POWER_LIMIT_MW    300000U
#define SM_CLOCK_MHZ      210U
#define MEMORY_CLOCK_MHZ  405U

struct sim {
    struct gpu_spec spec;
    _Atomic uint32_t samples; // GPUs are read in parallel
};

static int sim_open(
    const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err)
{
    struct sim *sim = xcalloc(1, sizeof(*sim));
    sim->spec = *spec;
    *ret_state = sim;
    return 0;
}

static size_t sim_count(const void *state)
{
    const struct sim *sim = state;
    return sim->spec.count;
}

static void sim_driver(void *state, char *text, size_t size)
{
    (void)snprintf(text, size, "sim");
}

static const char *sim_key(const void *state, size_t i)
{
    return "";
}

static void sim_describe(void *state, size_t i, struct gpu_state *gpu)
{
    const struct sim *sim = state;
    gpu->index = (uint32_t)i;
    gpu->vendor = GPU_VENDOR_SIMULATED;
    gpu->minor = gpu->render_minor = -1; // there is no device node
    gpu->uuid = xasprintf("GPU-sim-%zu", i);
    gpu->model = xstrdup(sim->spec.model);
    gpu->pci = xasprintf("0000:%02zx:00.0", (i + 1) & 0xff);
    gpu->memory_bytes = sim->spec.memory_bytes;
    /* Two NUMA nodes, each with a switch, and an NVLink within each pair of neighbours. */
    size_t half = (sim->spec.count + 1) / 2, other = i ^ 1;
    gpu->numa = gpu->pcie_switch = i < half ? 0 : 1;
    gpu->links = other < sim->spec.count && other < 64 ? UINT64_C(1) << other : 0;
}

static void sim_sample(void *state, size_t i, struct gpu_state *gpu)
{
    struct sim *sim = state;
    uint32_t drift = (sim->samples++ / 16 + (uint32_t)i * 3) % 5;
    gpu->valid = GPU_MEMORY_USED | GPU_UTILIZATION | GPU_TEMPERATURE | GPU_POWER | GPU_POWER_LIMIT |
                 GPU_ENERGY | GPU_SM_CLOCK | GPU_MEMORY_CLOCK | GPU_ECC | GPU_PROCESSES;
    gpu->memory_used_bytes = sim->spec.memory_bytes < 4 * IDLE_MEMORY_BYTES ? 0 : IDLE_MEMORY_BYTES;
    gpu->utilization_percent = 0;
    gpu->temperature_c = IDLE_CELSIUS + drift;
    gpu->power_mw = IDLE_POWER_MW + drift * 250;
    gpu->power_limit_mw = POWER_LIMIT_MW;
    gpu->energy_mj += gpu->power_mw; // as if samples arrived every second
    gpu->sm_clock_mhz = SM_CLOCK_MHZ;
    gpu->memory_clock_mhz = MEMORY_CLOCK_MHZ;
    gpu->is_lost = 0;
}

/* No process runs there that could leave anything behind. */
static void sim_look(void *state, size_t i, struct gpu_state *gpu)
{
}

static void sim_close(void *state)
{
    freep(&state);
}

const struct gpu_backend gpu_sim = {
    .name = "sim",
    .open = sim_open,
    .count = sim_count,
    .driver = sim_driver,
    .key = sim_key,
    .describe = sim_describe,
    .sample = sim_sample,
    .look = sim_look,
    .close = sim_close,
};
