/* SPDX-License-Identifier: MIT */
#include "base/gpu_vendor.h"

#include <string.h>

#define ROW(id, its_number, word, ...) { .number = (its_number), .backend = #word, __VA_ARGS__ },
const struct gpu_vendor gpu_vendors[] = { GPU_VENDORS(ROW) };
const size_t gpu_vendors_count = sizeof(gpu_vendors) / sizeof(gpu_vendors[0]);

const struct gpu_vendor *gpu_vendor_of(uint32_t number)
{
    for (size_t i = 0; i < gpu_vendors_count; i++)
        if (gpu_vendors[i].number == number)
            return &gpu_vendors[i];
    return &gpu_vendors[0];
}

const struct gpu_vendor *gpu_vendor_seen(uint32_t number)
{
    const struct gpu_vendor *vendor = gpu_vendor_of(number);
    return vendor->stands_for != 0 ? gpu_vendor_of(vendor->stands_for) : vendor;
}

const struct gpu_vendor *gpu_vendor_by_backend(const char *backend)
{
    for (size_t i = 0; backend != NULL && i < gpu_vendors_count; i++)
        if (strcmp(gpu_vendors[i].backend, backend) == 0)
            return &gpu_vendors[i];
    return NULL;
}

bool gpu_vendor_names(const char *const *list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* The variable of a row with that name or, if `is_prefix`, with the same prefix up to the first "_". */
static const struct gpu_variable *find_variable(const char *name, bool is_prefix)
{
    for (size_t i = 0; i < gpu_vendors_count; i++)
        for (const struct gpu_variable *variable = gpu_vendors[i].variables; variable->name != NULL;
             variable++) {
            size_t length = is_prefix ? strcspn(variable->name, "_") + 1 : strlen(variable->name) + 1;
            if (strncmp(variable->name, name, length) == 0)
                return variable;
        }
    return NULL;
}

bool gpu_vendor_has_variable(const char *name)
{
    return find_variable(name, false) != NULL;
}

bool gpu_vendor_lists(const char *name)
{
    const struct gpu_variable *variable = find_variable(name, false);
    return variable != NULL && variable->kind != GPU_VARIABLE_FIXED;
}

bool gpu_vendor_has_prefix(const char *name)
{
    return find_variable(name, true) != NULL;
}
