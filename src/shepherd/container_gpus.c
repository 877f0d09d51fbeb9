/* SPDX-License-Identifier: MIT */
/*
 * A CDI description includes the driver's libraries; device nodes alone do not. It names GPUs by UUID or by
 * number, depending on how it was generated, which is detected from its text.
 */
#include "shepherd/container_gpus.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"

#define CDI_FILE_MAX (8U << 20)

static const char *const cdi_directories[] = { "/etc/cdi", "/var/run/cdi", NULL };

/* Adds a GPU by its name in the description: its UUID or its number. */
static void add_described(
    const char *text, const char *kind, const struct launch_image *image, struct strings *words)
{
    for (size_t i = 0; i < image->gpus.count; i++) {
        const char *space = strchr(image->gpus.items[i], ' ');
        int length = space != NULL ? (int)(space - image->gpus.items[i]) : 0;
        bool has_uuid = space != NULL && space[1] != '\0' && strstr(text, space + 1) != NULL;
        strings_take(words, has_uuid ? xasprintf("--device=%s=%s", kind, space + 1)
                                     : xasprintf("--device=%s=%.*s", kind, length, image->gpus.items[i]));
    }
}

static bool add_from_file(
    int dirfd, const char *name, const char *kind, const struct launch_image *image, struct strings *words)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const char *dot = strrchr(name, '.');
    if (dot == NULL || (strcmp(dot, ".json") != 0 && strcmp(dot, ".yaml") != 0) ||
        file_read(dirfd, name, CDI_FILE_MAX, &text) < 0 || strstr(buffer_text(&text), kind) == NULL)
        return false;
    add_described(buffer_text(&text), kind, image, words);
    return true;
}

bool container_add_described(
    const char *const *directories, const char *kind, const struct launch_image *image, struct strings *words)
{
    bool is_found = false;
    for (const char *const *path = directories; !is_found && *path != NULL; path++) {
        DIR *dir = opendir(*path);
        if (dir == NULL)
            continue;
        for (const struct dirent *entry; !is_found && (entry = readdir(dir)) != NULL;)
            is_found = add_from_file(dirfd(dir), entry->d_name, kind, image, words);
        (void)closedir(dir);
    }
    return is_found;
}

void container_add_gpus(const struct launch_image *image, struct strings *words)
{
    const struct gpu_vendor *vendor = gpu_vendor_of(image->vendor);
    if (image->visible != NULL && vendor->variables[0].name != NULL)
        (void)setenv(vendor->variables[0].name, image->visible, 1);
    if (vendor->cdi != NULL && container_add_described(cdi_directories, vendor->cdi, image, words))
        return;
    for (size_t i = 0; i < image->devices.count; i++)
        if (access(image->devices.items[i], F_OK) == 0)
            strings_take(words, xasprintf("--device=%s", image->devices.items[i]));
}
