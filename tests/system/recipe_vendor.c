/* SPDX-License-Identifier: MIT */
/*
 * The backend of a vendor that there is not, as an heir would write it: test_recipes.py adds it to a copy of
 * the sources. Each of its cards is a folder SYSFS/class/granite/granite0 with the files uuid, pci, memory
 * and used.
 */
#include "agent/gpu/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"

#define CARDS_MAX 8U
#define FILE_MAX  64U

struct granite {
    struct gpu_progress *page;
    char *folders[CARDS_MAX];
    char keys[CARDS_MAX][FILE_MAX];
    size_t count;
};

/* The line in the file; NULL: it cannot be read. The caller frees it. */
static char *read_line(const char *folder, const char *name)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0)
        return NULL;
    return xstrndup(buffer_text(&text), strcspn(buffer_text(&text), "\n"));
}

static uint64_t read_bytes(const char *folder, const char *name)
{
    _cleanup_free_ char *line = read_line(folder, name);
    return line != NULL ? strtoull(line, NULL, 10) : 0;
}

static void granite_close(void *state)
{
    struct granite *granite = state;
    for (size_t i = 0; granite != NULL && i < granite->count; i++)
        free(granite->folders[i]);
    free(granite);
}

static int granite_open(
    const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err)
{
    struct granite *granite = xcalloc(1, sizeof(*granite));
    granite->page = page;
    for (size_t i = 0; i < CARDS_MAX; i++) {
        char *folder = xasprintf("%s/class/granite/granite%zu", gpu_spec_sysfs(spec), i);
        _cleanup_free_ char *pci = read_line(folder, "pci");
        if (pci == NULL || gpu_progress_is_left_out(page, pci)) {
            free(folder);
            continue;
        }
        gpu_progress_enter(page, pci);
        (void)snprintf(granite->keys[granite->count], FILE_MAX, "%s", pci);
        granite->folders[granite->count++] = folder;
    }
    *ret_state = granite;
    if (granite->count > 0)
        return 0;
    granite_close(granite);
    return error_set(err, -ENODEV, "no granite card found in %s/class/granite", gpu_spec_sysfs(spec));
}

static size_t granite_count(const void *state)
{
    return ((const struct granite *)state)->count;
}

static const char *granite_key(const void *state, size_t i)
{
    return ((const struct granite *)state)->keys[i];
}

static void granite_describe(void *state, size_t i, struct gpu_state *gpu)
{
    const struct granite *granite = state;
    gpu->index = (uint32_t)i;
    gpu->vendor = GPU_VENDOR_GRANITE;
    gpu->minor = (int32_t)strtol(strrchr(granite->folders[i], 'e') + 1, NULL, 10);
    gpu->render_minor = -1;
    gpu->uuid = read_line(granite->folders[i], "uuid");
    gpu->model = xstrdup("Granite 1");
    gpu->pci = xstrdup(granite->keys[i]);
    gpu->memory_bytes = read_bytes(granite->folders[i], "memory");
}

static void granite_sample(void *state, size_t i, struct gpu_state *gpu)
{
    const struct granite *granite = state;
    gpu->memory_used_bytes = read_bytes(granite->folders[i], "used");
    gpu->valid = GPU_MEMORY_USED | GPU_PROCESSES;
    gpu->is_lost = access(granite->folders[i], F_OK) < 0;
}

const struct gpu_backend gpu_granite = {
    .name = "granite",
    .open = granite_open,
    .count = granite_count,
    .key = granite_key,
    .describe = granite_describe,
    .sample = granite_sample,
    .close = granite_close,
};
