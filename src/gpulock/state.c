/* SPDX-License-Identifier: MIT */
/*
 * Lines, because an administrator may have to restore by hand:
 *
 *      mgpu-gpu-lock 1 held 0
 *      node nvidia0 0 0 0666 -
 *
 * version, phase and group; then name, owner, group, mode and access list (in hexadecimal) of each node.
 */
#include "gpulock/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define STATE_MAX ((size_t)4 << 20)
#define NAME_SIZE 64
#define MODES     07777U

static const char *const phases[] = { [GPU_LOCK_BEGUN] = "begun", [GPU_LOCK_HELD] = "held" };

void gpu_lock_state_clear(struct gpu_lock_state *state)
{
    for (size_t i = 0; i < state->count; i++) {
        free(state->nodes[i].name);
        gpu_node_access_clear(&state->nodes[i].before);
    }
    free(state->nodes);
    *state = (struct gpu_lock_state){ 0 };
}

const struct gpu_lock_node *gpu_lock_state_find(const struct gpu_lock_state *state, const char *name)
{
    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->nodes[i].name, name) == 0)
            return &state->nodes[i];
    return NULL;
}

void gpu_lock_state_add(struct gpu_lock_state *state, const char *name, struct gpu_node_access *access)
{
    state->nodes = xreallocarray(state->nodes, state->count + 1, sizeof(*state->nodes));
    state->nodes[state->count++] = (struct gpu_lock_node){ .name = xstrdup(name), .before = *access };
    *access = (struct gpu_node_access){ 0 };
}

/* --- read --- */

static int read_hex(const char *text, struct buffer *ret)
{
    char byte[3] = { 0 };
    size_t length = strlen(text);
    if (strcmp(text, "-") == 0)
        return 0;
    if (length == 0 || length % 2 != 0 || text[strspn(text, "0123456789abcdef")] != '\0')
        return -EBADMSG;
    for (size_t i = 0; i < length; i += 2) {
        memcpy(byte, text + i, 2);
        uint8_t value = (uint8_t)strtoul(byte, NULL, 16);
        buffer_append(ret, &value, 1);
    }
    return 0;
}

static bool is_plain_name(const char *name)
{
    return name[0] != '/' && strstr(name, "..") == NULL;
}

static int read_node(const char *line, struct gpu_lock_state *state)
{
    char name[NAME_SIZE];
    unsigned uid, gid, mode;
    int list = 0;
    struct gpu_node_access access = { 0 };
    if (sscanf(line, "node %63s %u %u %o %n", name, &uid, &gid, &mode, &list) != 4 || list == 0 ||
        mode > MODES || !is_plain_name(name))
        return -EBADMSG;
    int r = read_hex(line + list, &access.acl);
    access.uid = uid;
    access.gid = gid;
    access.mode = mode;
    if (r == 0)
        gpu_lock_state_add(state, name, &access);
    else
        gpu_node_access_clear(&access);
    return r;
}

static int read_head(const char *line, struct gpu_lock_state *state)
{
    char word[8];
    unsigned gid;
    if (line == NULL || sscanf(line, "mgpu-gpu-lock 1 %7s %u", word, &gid) != 2)
        return -EBADMSG;
    state->gid = gid;
    state->phase = strcmp(word, phases[GPU_LOCK_HELD]) == 0    ? GPU_LOCK_HELD
                   : strcmp(word, phases[GPU_LOCK_BEGUN]) == 0 ? GPU_LOCK_BEGUN
                                                               : GPU_LOCK_NONE;
    return state->phase != GPU_LOCK_NONE ? 0 : -EBADMSG;
}

int gpu_lock_state_read(const char *path, struct gpu_lock_state *ret, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    struct gpu_lock_state state = { 0 };
    int r = file_read(AT_FDCWD, path, STATE_MAX, &text);
    if (r < 0 && r != -ENOENT)
        return error_set_errno(err, r, "cannot read %s", path);
    *ret = state;
    if (r == -ENOENT)
        return 0;
    char *rest = buffer_text(&text);
    bool is_text = strlen(rest) == text.length; // zeros are a hole, behind which there may be more nodes
    r = is_text ? read_head(strsep(&rest, "\n"), &state) : -EBADMSG;
    for (const char *line; r == 0 && (line = strsep(&rest, "\n")) != NULL;)
        r = *line != '\0' ? read_node(line, &state) : 0;
    if (r < 0) {
        gpu_lock_state_clear(&state);
        return error_set(err, r, "%s is damaged", path);
    }
    *ret = state;
    return 0;
}

/* --- write --- */

int gpu_lock_state_write(const char *path, const struct gpu_lock_state *state, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = xstrndup(path, (size_t)(slash - path));
    buffer_printf(&text, "mgpu-gpu-lock 1 %s %u\n", phases[state->phase], state->gid);
    for (size_t i = 0; i < state->count; i++) {
        const struct gpu_node_access *before = &state->nodes[i].before;
        buffer_printf(&text, "node %s %u %u %04o ", state->nodes[i].name, before->uid, before->gid,
            (unsigned)before->mode);
        for (size_t k = 0; k < before->acl.length; k++)
            buffer_printf(&text, "%02x", before->acl.bytes[k]);
        buffer_append_text(&text, before->acl.length == 0 ? "-\n" : "\n");
    }
    int r = make_directories(folder, 0711);
    _cleanup_close_ int fd = r < 0 ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = fd < 0 ? -errno : file_write(fd, slash + 1, text.bytes, text.length, true);
    return r < 0 ? error_set_errno(err, r, "cannot write %s", path) : 0;
}
