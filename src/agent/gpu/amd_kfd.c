/* SPDX-License-Identifier: MIT */
/*
 * class/kfd/kfd/topology/nodes/N/gpu_id, .../properties          CPUs are nodes too, with a gpu_id of 0
 * class/kfd/kfd/topology/nodes/N/io_links/M/properties            type 11 is XGMI
 * class/kfd/kfd/proc/PID/vram_GPUID                               bytes; 0 on GPUs that it does not use
 */
#include "agent/gpu/amd_kfd.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/report.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define PROPERTIES_MAX 16384U
#define NODES_MAX      (2 * NODE_GPUS_MAX) // directories examined
#define PIDS_MAX       65536U
#define LINK_XGMI      11U

/* Calls `visit` for each entry whose name is a number. */
typedef void entry_fn(void *arg, const char *dir, unsigned int number);
static void visit_numbers(const char *path, size_t max, entry_fn *visit, void *arg)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; max > 0 && (entry = readdir(dir)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        max--;
        visit(arg, path, (unsigned int)strtoul(entry->d_name, NULL, 10));
    }
    (void)closedir(dir);
}

static bool read_number(const char *path, uint64_t *ret)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char *end;
    if (file_read(AT_FDCWD, path, PROPERTIES_MAX, &text) < 0)
        return false;
    *ret = strtoull(buffer_text(&text), &end, 10);
    return end != buffer_text(&text);
}

/* The value of a row such as "location_id 768"; 0 if there is none. */
static uint64_t find_property(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *row = text; row != NULL && *row != '\0'; row = strchr(row, '\n')) {
        row += *row == '\n';
        if (strncmp(row, name, length) == 0 && row[length] == ' ')
            return strtoull(row + length + 1, NULL, 10);
    }
    return 0;
}

static void add_link(void *arg, const char *dir, unsigned int number)
{
    struct amd_node *node = arg;
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%u/properties", dir, number);
    if (file_read(AT_FDCWD, path, PROPERTIES_MAX, &text) < 0 ||
        find_property(buffer_text(&text), "type") != LINK_XGMI || node->n_links == NODE_GPUS_MAX)
        return;
    node->links[node->n_links++] = (unsigned int)find_property(buffer_text(&text), "node_to");
}

struct node_list {
    struct amd_node *items;
    size_t count;
};

static void add_node(void *arg, const char *dir, unsigned int number)
{
    struct node_list *list = arg;
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *id_path = xasprintf("%s/%u/gpu_id", dir, number);
    _cleanup_free_ char *path = xasprintf("%s/%u/properties", dir, number);
    _cleanup_free_ char *links = xasprintf("%s/%u/io_links", dir, number);
    uint64_t gpu_id = 0;
    if (!read_number(id_path, &gpu_id) || gpu_id == 0 || list->count == NODE_GPUS_MAX ||
        file_read(AT_FDCWD, path, PROPERTIES_MAX, &text) < 0)
        return;
    uint64_t place = find_property(buffer_text(&text), "location_id");
    uint64_t domain = find_property(buffer_text(&text), "domain");
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    struct amd_node *node = &list->items[list->count++];
    *node = (struct amd_node){ .number = number, .gpu_id = gpu_id };
    (void)snprintf(node->pci, sizeof(node->pci), "%04x:%02x:%02x.%x", (unsigned)domain & 0xffffU,
        (unsigned)(place >> 8) & 0xffU, (unsigned)(place >> 3) & 0x1fU, (unsigned)place & 7U);
    visit_numbers(links, NODES_MAX, add_link, node);
}

struct amd_node *amd_kfd_nodes(const char *sysfs, size_t *ret_count)
{
    struct node_list list = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/class/kfd/kfd/topology/nodes", sysfs);
    visit_numbers(path, NODES_MAX, add_node, &list);
    *ret_count = list.count;
    return list.items;
}

/* --- processes --- */

struct process_search {
    uint64_t gpu_id;
    struct record_list *processes;
};

static void add_process(void *arg, const char *dir, unsigned int pid)
{
    const struct process_search *search = arg;
    struct record_list *list = search->processes;
    _cleanup_free_ char *path = xasprintf("%s/%u/vram_%" PRIu64, dir, pid, search->gpu_id);
    uint64_t bytes = 0;
    if (!read_number(path, &bytes) || bytes == 0 || pid == 0)
        return;
    struct gpu_process *items = xreallocarray(list->items, list->count + 1, sizeof(*items));
    items[list->count++] = (struct gpu_process){
        .pid = pid, .kind = GPU_PROCESS_COMPUTE, .is_memory_known = 1, .memory_bytes = bytes
    };
    list->items = items;
}

void amd_kfd_processes(const char *sysfs, uint64_t gpu_id, struct gpu_state *gpu)
{
    struct process_search search = { gpu_id, &gpu->processes };
    _cleanup_free_ char *path = xasprintf("%s/class/kfd/kfd/proc", sysfs);
    gpu_processes_cut(&gpu->processes, 0);
    if (access(path, R_OK | X_OK) < 0)
        return;
    visit_numbers(path, PIDS_MAX, add_process, &search);
    gpu_processes_sort(&gpu->processes);
    gpu_processes_cut(&gpu->processes, GPU_PROCESSES_MAX);
    gpu->valid |= GPU_PROCESSES;
}
