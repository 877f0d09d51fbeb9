/* SPDX-License-Identifier: MIT */
/* Which device nodes of GPUs this process may open: an errno for each, 0 if it is open. It needs no driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lab/cuda/probes.h"

#define NODES        64U // /dev/nvidia0 and so on
#define RENDER_FIRST 128U

/* Adds the node to `nodes`, if it is there. */
static void try_node(json_t *nodes, const char *path)
{
    if (access(path, F_OK) < 0)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    (void)json_array_append_new(nodes, json_pack("{s:s, s:i}", "path", path, "open_errno", error));
}

int probe_nodes(const struct probe_options *options, const struct cuda_api *api)
{
    json_t *nodes = json_array(), *of_amd = json_array();
    const char *visible = getenv("ROCR_VISIBLE_DEVICES");
    try_node(of_amd, "/dev/kfd");
    for (unsigned int i = 0; i < NODES; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/dev/nvidia%u", i);
        try_node(nodes, path);
        (void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", RENDER_FIRST + i);
        try_node(of_amd, path);
    }
    json_t *line = json_pack("{s:s, s:o, s:o, s:s}", "result", "passed", "nodes", nodes, "amd_nodes", of_amd,
        "rocr_visible", visible != NULL ? visible : "");
    char *text = json_dumps(line, JSON_COMPACT);
    (void)puts(text != NULL ? text : "{}");
    free(text);
    json_decref(line);
    return PROBE_OK;
}

int probe_open(const struct probe_options *options, const struct cuda_api *api)
{
    static const char path[] = "/dev/nvidiactl";
    int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    bool is_open = error == 0 || error == ENXIO; // without a driver behind the node
    (void)printf("{\"result\":\"%s\",\"open_errno\":%d}\n", is_open ? "passed" : "failed", error);
    return is_open ? PROBE_OK : PROBE_WRONG;
}
