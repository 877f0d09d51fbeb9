/* SPDX-License-Identifier: MIT */
/*
 * /sys/bus/pci/devices/ADDRESS is a link to the device's position in the tree of bridges:
 *   ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:05:00.0
 * The last component is the GPU, the one before it the switch's port, and the one before that the switch
 * itself. A GPU directly below a root port has no switch and shares the root complex.
 */
#include "agent/gpu/place.h"

#include <dirent.h>
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

/* The path down to the switch above the GPU; NULL if it cannot be read. The caller frees it. */
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
    _cleanup_free_ char **switches = xcalloc(count + 1, sizeof(*switches));
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
}

/* --- network interfaces --- */

static int64_t read_integer(const char *path)
{
    FILE *file = fopen(path, "re");
    long long value = -1;
    if (file == NULL)
        return -1;
    if (fscanf(file, "%lld", &value) != 1)
        value = -1;
    (void)fclose(file);
    return value;
}

/* "mlx5_0" of DEVICE/infiniband; NULL: none. The caller frees it. */
static char *read_rdma(const char *sysfs, const char *interface)
{
    _cleanup_free_ char *path = xasprintf("%s/class/net/%s/device/infiniband", sysfs, interface);
    char *name = NULL;
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && name == NULL && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            name = xstrdup(entry->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    return name;
}

/* "0000:3b:00.0", the last component of the link to the device, if it is a PCI device. The caller frees
 * it. */
static char *read_pci(const char *sysfs, const char *interface)
{
    char place[PATH_MAX];
    unsigned parts[4];
    int end = 0;
    _cleanup_free_ char *path = xasprintf("%s/class/net/%s/device", sysfs, interface);
    ssize_t n = readlink(path, place, sizeof(place) - 1);
    if (n <= 0)
        return NULL;
    place[n] = '\0';
    const char *last = strrchr(place, '/') != NULL ? strrchr(place, '/') + 1 : place;
    bool is_pci = sscanf(last, "%x:%x:%x.%x%n", &parts[0], &parts[1], &parts[2], &parts[3], &end) == 4 &&
                  last[end] == '\0';
    return is_pci ? xstrdup(last) : NULL;
}

static int32_t find_switch(const char *sysfs, const char *pci, const struct gpu_state *gpus, size_t count)
{
    _cleanup_free_ char *own = read_switch(sysfs, pci);
    int32_t found = -1;
    for (size_t i = 0; own != NULL && found < 0 && i < count; i++) {
        _cleanup_free_ char *other = gpus[i].pci != NULL ? read_switch(sysfs, gpus[i].pci) : NULL;
        if (other != NULL && strcmp(own, other) == 0)
            found = gpus[i].pcie_switch;
    }
    return found;
}

static int compare_nics(const void *a, const void *b)
{
    return strcmp(((const struct node_nic *)a)->name, ((const struct node_nic *)b)->name);
}

void gpu_place_nics(const char *sysfs, const struct gpu_state *gpus, size_t count, struct record_list *ret)
{
    struct node_nic *nics = xcalloc(NODE_NICS_MAX, sizeof(*nics));
    _cleanup_free_ char *path = xasprintf("%s/class/net", sysfs);
    DIR *dir = opendir(path);
    *ret = (struct record_list){ nics, 0 };
    for (const struct dirent *entry;
         dir != NULL && ret->count < NODE_NICS_MAX && (entry = readdir(dir)) != NULL;) {
        _cleanup_free_ char *pci = entry->d_name[0] != '.' ? read_pci(sysfs, entry->d_name) : NULL;
        if (pci == NULL)
            continue;
        _cleanup_free_ char *speed = xasprintf("%s/%s/speed", path, entry->d_name);
        _cleanup_free_ char *carrier = xasprintf("%s/%s/carrier", path, entry->d_name);
        int64_t megabits = read_integer(speed);
        nics[ret->count++] = (struct node_nic){ .name = xstrdup(entry->d_name),
            .rdma = read_rdma(sysfs, entry->d_name),
            .numa = read_numa(sysfs, pci),
            .pcie_switch = find_switch(sysfs, pci, gpus, count),
            .speed_mb = megabits > 0 && megabits <= UINT32_MAX ? (uint32_t)megabits : 0,
            .is_up = read_integer(carrier) == 1 };
    }
    if (dir != NULL)
        (void)closedir(dir);
    qsort(nics, ret->count, sizeof(*nics), compare_nics);
}

void gpu_place_clear_nics(struct record_list *nics)
{
    struct node_nic *items = nics->items;
    for (size_t i = 0; i < nics->count; i++) {
        free(items[i].name);
        free(items[i].rdma);
    }
    free(items);
    *nics = (struct record_list){ 0 };
}
