/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/gpu_vendor.h"
#include "unit_test.h"

TEST(no_two_rows_have_a_number_or_a_word)
{
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        assert_ptr_equal(gpu_vendor_of(gpu_vendors[i].number), &gpu_vendors[i]);
        assert_ptr_equal(gpu_vendor_by_backend(gpu_vendors[i].backend), &gpu_vendors[i]);
    }
    assert_null(gpu_vendor_by_backend(NULL));
    assert_null(gpu_vendor_by_backend("none"));
    assert_null(gpu_vendor_by_backend("auto"));
}

TEST(a_number_that_no_row_has_is_of_no_driver)
{
    assert_true(gpu_vendor_of(UINT32_MAX)->is_made_up);
}

/* Code takes the first variable as the list, and nodes as names with a number behind them. */
TEST(each_row_begins_with_a_list_and_has_nodes_that_can_be_found)
{
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const struct gpu_vendor *vendor = &gpu_vendors[i];
        const struct gpu_vendor *seen = gpu_vendor_seen(vendor->number);
        if (seen->variables[0].name == NULL || seen->variables[0].kind == GPU_VARIABLE_FIXED ||
            seen->variables[0].kind == GPU_VARIABLE_PLACES)
            fail_msg("%s has no list of GPUs first", vendor->backend);
        if (seen->variables[GPU_VENDOR_VARIABLES_MAX - 1].name != NULL ||
            seen->control[GPU_VENDOR_NAMES_MAX - 1] != NULL ||
            seen->locked[GPU_VENDOR_NAMES_MAX - 1] != NULL ||
            seen->shared_drivers[GPU_VENDOR_NAMES_MAX - 1] != NULL)
            fail_msg("a list of %s has no end", vendor->backend);
        if (!vendor->is_made_up && vendor->node == NULL && vendor->pci_vendor == 0)
            fail_msg("%s has neither nodes of its own nor render nodes", vendor->backend);
        if (vendor->control_last > 0 && vendor->node_major == 0)
            fail_msg("%s has control nodes among nodes of an unknown number", vendor->backend);
        for (const struct gpu_variable *variable = seen->variables; variable->name != NULL; variable++)
            if ((variable->kind == GPU_VARIABLE_FIXED) != (variable->text != NULL))
                fail_msg("%s has a text that is not fixed, or none", variable->name);
        for (const char *const *name = seen->locked; *name != NULL; name++)
            if (!gpu_vendor_names(seen->control, *name))
                fail_msg("%s is closed and no job needs it", *name);
    }
}

TEST(variables_are_known_by_their_names_alone)
{
    static const char *const lists[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES" };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_true(gpu_vendor_has_variable(lists[i]));
        assert_true(gpu_vendor_lists(lists[i]));
        assert_true(gpu_vendor_has_prefix(lists[i]));
    }
    assert_true(gpu_vendor_has_variable("CUDA_DEVICE_ORDER"));
    assert_false(gpu_vendor_lists("CUDA_DEVICE_ORDER"));
    assert_false(gpu_vendor_has_variable("CUDA_VISIBLE_DEVICES_2"));
    assert_false(gpu_vendor_has_variable("CUDA_"));
    assert_true(gpu_vendor_has_prefix("CUDA_HOME"));
    assert_false(gpu_vendor_has_prefix("CUDAX"));
    assert_false(gpu_vendor_has_prefix(""));
}
