/* SPDX-License-Identifier: MIT */
#include "job/share.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"

#define MIB       (UINT64_C(1) << 20)
#define PERCENT   100U
#define STRONGEST SHARE_DMEM

static const char *const names[SHARE_KINDS] = {
    [SHARE_NONE] = "none",
    [SHARE_TIME] = "time",
    [SHARE_MPS] = "mps",
    [SHARE_DMEM] = "dmem",
    [SHARE_AUTO] = "auto",
};

const char *share_kind_name(enum share_kind kind)
{
    return kind < SHARE_KINDS ? names[kind] : "invalid";
}

enum share_kind share_kind_from_name(const char *name)
{
    enum share_kind kind = SHARE_NONE;
    if (name == NULL)
        return SHARE_NONE;
    while (kind < SHARE_KINDS && strcmp(names[kind], name) != 0)
        kind++;
    return kind;
}

void share_ways_refuse(struct share_ways *ways, enum share_kind kind, const char *why)
{
    ways->is_available[kind] = false;
    (void)snprintf(ways->why_not[kind], sizeof(ways->why_not[kind]), "%s", why);
}

enum share_kind share_ways_strongest(const struct share_ways *ways)
{
    enum share_kind kind = STRONGEST;
    while (kind > SHARE_NONE && !ways->is_available[kind])
        kind--;
    return kind;
}

char *share_ways_text(const struct share_ways *ways, enum share_kind kind)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (enum share_kind i = STRONGEST; i > kind; i--)
        if (!ways->is_available[i])
            buffer_printf(
                &text, "%sno %s: %s", text.length > 0 ? "; " : "", share_kind_name(i), ways->why_not[i]);
    return text.length > 0 ? text_escape_fit(buffer_text(&text), SHARE_TEXT_MAX) : NULL;
}

/* "drm/0000:03:00.0/vram0": a part of the name, delimited by characters that are not part of an address. */
static bool names_device(const char *region, size_t length, const char *pci)
{
    size_t n = strlen(pci);
    for (size_t i = 0; n > 0 && i + n <= length; i++) {
        bool is_start = i == 0 || !isalnum((unsigned char)region[i - 1]);
        bool is_end = i + n == length || !isalnum((unsigned char)region[i + n]);
        if (is_start && is_end && strncasecmp(region + i, pci, n) == 0)
            return true;
    }
    return false;
}

char *share_region(const char *regions, const char *pci)
{
    while (regions != NULL && pci != NULL && *regions != '\0') {
        size_t length = strcspn(regions, " \n");
        if (regions[length] == ' ' && names_device(regions, length, pci))
            return xstrndup(regions, length);
        regions = strchr(regions, '\n');
        regions = regions != NULL ? regions + 1 : NULL;
    }
    return NULL;
}

int share_check(const struct job_ask *ask, struct error *err)
{
    enum share_kind kind = share_kind_from_name(ask->share);
    if (kind == SHARE_KINDS && strcmp(ask->share, "mig") == 0) {
        (void)error_set(err, -EINVAL, "share: mig is not a way to enforce a share");
        return error_hint(err, "a MIG instance counts as a GPU: request it as one");
    }
    if (kind == SHARE_KINDS) {
        (void)error_set(err, -EINVAL, "share: '%.40s' is not " SHARE_NAMES, ask->share);
        return error_hint(err, "auto uses the strongest that works on the node");
    }
    if (kind == SHARE_NONE)
        return 0;
    if (ask->adopted_pid != 0) {
        (void)error_set(err, -EINVAL, "share: the GPU memory of an adopted process cannot be limited");
        return error_hint(err, "omit share");
    }
    if (ask->gpu_mem != 0 || ask->gpu_share != 0)
        return 0;
    (void)error_set(err, -EINVAL, "share requires a share of a GPU, and this job requests whole GPUs");
    return error_hint(err, "request a share: -m 8G or -g 0.5");
}

uint64_t share_bytes(const struct gpu_grant *grant, uint64_t gpu_bytes)
{
    uint64_t bytes = grant->memory;
    if (grant->slot == 0)
        return 0;
    if (bytes == 0)
        bytes = gpu_bytes * grant->share / ASK_SHARE_WHOLE;
    return bytes / MIB * MIB;
}

uint32_t share_percent(const struct gpu_grant *grant)
{
    return grant->share != 0 ? (grant->share * PERCENT + ASK_SHARE_WHOLE - 1) / ASK_SHARE_WHOLE : PERCENT;
}
