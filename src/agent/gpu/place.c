/* SPDX-License-Identifier: MIT */
/*
 * /sys/bus/pci/devices/ADDRESS is a link to the device's position in the tree of bridges:
 *   ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:05:00.0
 * The last is the GPU, the one before it the switch's port to it, and the one before that the switch itself;
 * a GPU directly below a root port has no switch and shares the root complex.
 */
#include "agent/gpu/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static int read_numa(const char *sysfs, const char *pci)
{
    _cleanup_free_ char *path = xasprintf("%s/bus/pci/devices/%s/numa_node", sysfs, pci);
    FILE *file = fopen(path, "re");
    int numa = -1;
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &numa) != 1 || numa < 0)
        numa = -1;
    (void)fclose(file);
    return numa;
}

/* The path down to the switch above the GPU; NULL when it cannot be read. The caller frees it. */
static char *read_switch(const char *sysfs, const char *pci)
{
    char place[PATH_MAX];
    _cleanup_free_ char *path = xasprintf("%s/bus/pci/devices/%s", sysfs, pci);
    ssize_t n = readlink(path, place, sizeof(place) - 1);
    if (n <= 0)
        return NULL;
    place[n] = '\0';
    for (int up = 0; up < 2; up++) { // the GPU, and the port to it
        char *slash = strrchr(place, '/');
        if (slash == NULL || strstr(place, "/pci") == slash)
            break;
        *slash = '\0';
    }
    return xstrdup(place);
}

void gpu_place_find(const char *sysfs, struct gpu_state *gpus, size_t count)
{
    char **switches = xcalloc(count + 1, sizeof(*switches));
    for (size_t i = 0; i < count; i++) {
        gpus[i].numa = gpus[i].pci != NULL ? read_numa(sysfs, gpus[i].pci) : -1;
        gpus[i].pcie_switch = -1;
        switches[i] = gpus[i].pci != NULL ? read_switch(sysfs, gpus[i].pci) : NULL;
        for (size_t k = 0; switches[i] != NULL && k <= i && gpus[i].pcie_switch < 0; k++)
            if (switches[k] != NULL && strcmp(switches[k], switches[i]) == 0)
                gpus[i].pcie_switch = (int32_t)k;
    }
    for (size_t i = 0; i < count; i++)
        free(switches[i]);
    free(switches);
}
