/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent/gpu/env.h"
#include "base/memory.h"
#include "job/event.h"
#include "wire/message.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

/* Grants GPUs 2 and 0 of these, and reads one variable. The caller frees it. */
static char *set(struct gpu_state *gpus, size_t count, bool is_guarded, const char *name)
{
    struct record_list list = { gpus, count };
    struct gpu_grant grants[] = { { .index = 2, .uuid = gpus[2].uuid },
        { .index = 0, .uuid = gpus[0].uuid } };
    struct record_list granted = { grants, 2 };
    _cleanup_strings_ struct strings env = { 0 };
    gpu_env_set(&list, &granted, is_guarded, &env);
    char *value = xstrdup(strings_get_env(&env, name));
    return value;
}

#define assert_set(gpus, name, expected) assert_set_if(false, gpus, name, expected)
#define assert_set_if(is_guarded, gpus, name, expected)                                                      \
    do {                                                                                                     \
        char *value = set(gpus, sizeof(gpus) / sizeof((gpus)[0]), is_guarded, name);                         \
        if ((expected) == NULL)                                                                              \
            assert_null(value);                                                                              \
        else                                                                                                 \
            assert_string_equal(value, (const char *)(expected));                                            \
        free(value);                                                                                         \
    } while (0)

#define NVIDIA(name, place, lost)                                                                            \
    {                                                                                                        \
        .uuid = (char[]){ name }, .pci = (char[]){ place }, .is_lost = (lost), .vendor = GPU_VENDOR_NVIDIA   \
    }
#define AMD(name, minor_number)                                                                              \
    {                                                                                                        \
        .uuid = (char[]){ name }, .vendor = GPU_VENDOR_AMD, .render_minor = (minor_number)                   \
    }

TEST(cuda_gets_numbers_while_it_counts_as_we_do)
{
    struct gpu_state gpus[] = { NVIDIA("GPU-a", "0000:01", 0), NVIDIA("GPU-b", "0000:02", 0),
        NVIDIA("GPU-c", "0000:03", 0) };
    assert_set(gpus, "CUDA_VISIBLE_DEVICES", "2,0");
    assert_set(gpus, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    assert_set(gpus, "ROCR_VISIBLE_DEVICES", NULL);
    assert_set(gpus, "HIP_VISIBLE_DEVICES", NULL);
}

/* CUDA does not number instances, and numbers the GPUs between them in its own way. */
TEST(cuda_gets_uuids_on_a_node_with_mig_instances)
{
    struct gpu_state gpus[] = { NVIDIA("GPU-a", "0000:01", 0), NVIDIA("GPU-b", "0000:02", 0),
        NVIDIA("MIG-c", "0000:02", 0) };
    gpus[2].parent = gpus[1].uuid;
    assert_set(gpus, "CUDA_VISIBLE_DEVICES", "MIG-c,GPU-a");
}

TEST(cuda_gets_uuids_when_its_numbers_may_be_others)
{
    struct gpu_state one_lost[] = { NVIDIA("GPU-a", "0000:01", 0), NVIDIA("GPU-b", "0000:02", 1),
        NVIDIA("GPU-c", "0000:03", 0) };
    struct gpu_state one_between[] = { NVIDIA("GPU-a", "0000:01", 0), NVIDIA("GPU-b", "0000:03", 0),
        NVIDIA("GPU-c", "0000:02", 0) };
    assert_set(one_lost, "CUDA_VISIBLE_DEVICES", "GPU-c,GPU-a");
    assert_set(one_between, "CUDA_VISIBLE_DEVICES", "GPU-c,GPU-a");
}

TEST(rocm_gets_uuids_and_hip_counts_anew)
{
    struct gpu_state gpus[] = { AMD("GPU-00000000000000aa", 128), AMD("GPU-00000000000000bb", 129),
        AMD("GPU-00000000000000cc", 130) };
    assert_set(gpus, "ROCR_VISIBLE_DEVICES", "GPU-00000000000000cc,GPU-00000000000000aa");
    assert_set(gpus, "HIP_VISIBLE_DEVICES", "0,1");
    assert_set(gpus, "CUDA_VISIBLE_DEVICES", NULL);
}

TEST(rocm_gets_numbers_of_gpus_without_a_unique_id)
{
    struct gpu_state gpus[] = { AMD("PCI-0000:03:00.0", 129), AMD("PCI-0000:04:00.0", 130),
        AMD("PCI-0000:05:00.0", 128) };
    assert_set(gpus, "ROCR_VISIBLE_DEVICES", "0,1");
}

/* The one that it was not given is not found in between. */
TEST(rocm_counts_only_what_the_job_can_open)
{
    struct gpu_state gpus[] = { AMD("PCI-0000:03:00.0", 130), AMD("PCI-0000:04:00.0", 128),
        AMD("PCI-0000:05:00.0", 129) };
    assert_set(gpus, "ROCR_VISIBLE_DEVICES", "1,2");
    assert_set_if(true, gpus, "ROCR_VISIBLE_DEVICES", "0,1");
}

TEST(a_job_without_gpus_sees_none)
{
    struct gpu_state amd[] = { AMD("GPU-00000000000000aa", 128) }, nvidia[] = { NVIDIA("GPU-a", "0", 0) };
    struct record_list none = { 0 }, amds = { amd, 1 }, nvidias = { nvidia, 1 };
    _cleanup_strings_ struct strings env = { 0 };
    gpu_env_set(&amds, &none, false, &env);
    assert_string_equal(strings_get_env(&env, "ROCR_VISIBLE_DEVICES"), "");
    assert_string_equal(strings_get_env(&env, "HIP_VISIBLE_DEVICES"), "");
    gpu_env_set(&nvidias, &none, false, &env);
    assert_string_equal(strings_get_env(&env, "CUDA_VISIBLE_DEVICES"), "");
}
