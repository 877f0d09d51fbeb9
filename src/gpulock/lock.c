/* SPDX-License-Identifier: MIT */
/*
 * What keeps the nodes closed after a reboot: NVIDIA's nodes have no device in sysfs. nvidia-modprobe, which
 * CUDA runs with root's rights, creates them, and gives existing ones the owner, group and mode of the
 * module's options. Those of AMD, and render nodes, are created by the kernel and opened by udev. The rules
 * come after 71-seat.rules and before 73-seat-late.rules, which gives nodes with the tag uaccess to the user
 * at the console.
 */
#include "gpulock/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "gpulock/nodes.h"
#include "gpulock/state.h"

#define HEAD       "# Made by mgpu gpu lock, removed by mgpu gpu unlock.\n"
#define FILE_MAX   65536U
#define FILE_MODE  0644
#define LOCK_MODE  0660U // also in the rules
#define OPEN_MODE  0666U
#define PARAMS     "/proc/driver/nvidia/params"
#define PARAMS_MAX 65536U

static const struct {
    const char *folder, *name;
} files[] = { { "/etc/modprobe.d", "mgpu-gpu-lock.conf" },
    { "/etc/udev/rules.d", "72-mgpu-gpu-lock.rules" } };
enum { MODPROBE, UDEV, N_FILES };

void gpu_lock_result_clear(struct gpu_lock_result *result)
{
    strings_clear(&result->nodes);
}

/* --- files --- */

/* Of a vendor's rule of udev what its nodes are: those of its GPUs and the shared ones, or the latter alone.
 */
static void match_nodes(const struct gpu_vendor *vendor, struct buffer *text)
{
    if (vendor->node == NULL)
        buffer_printf(text, "SUBSYSTEM==\"%s\", ", vendor->locked[0]);
    buffer_append_text(text, "KERNEL==\"");
    if (vendor->node != NULL)
        buffer_printf(text, "%s[0-9]*", vendor->node);
    for (const char *const *name = vendor->locked; *name != NULL; name++)
        buffer_printf(text, "%s%s", vendor->node != NULL || name != vendor->locked ? "|" : "", *name);
    buffer_append_text(text, "\", ");
}

static void match_render_nodes(struct buffer *text)
{
    const char *before = "";
    buffer_append_text(text, "SUBSYSTEM==\"drm\", KERNEL==\"renderD*\", ATTRS{vendor}==\"");
    for (size_t i = 0; i < gpu_vendors_count; i++)
        if (gpu_vendors[i].pci_vendor != 0) {
            buffer_printf(text, "%s0x%04x", before, gpu_vendors[i].pci_vendor);
            before = "|";
        }
    buffer_append_text(text, "\", ");
}

static char *make_text(size_t file, gid_t gid)
{
    static const char set[] = "OWNER:=\"root\", GROUP:=\"%u\", MODE:=\"0660\", TAG-=\"uaccess\"\n";
    struct buffer text = { 0 };
    buffer_append_text(&text, HEAD);
    if (file == MODPROBE) {
        buffer_printf(&text,
            "options nvidia NVreg_ModifyDeviceFiles=1 NVreg_DeviceFileUID=0 NVreg_DeviceFileGID=%u "
            "NVreg_DeviceFileMode=0%o\n",
            gid, LOCK_MODE);
        return buffer_take(&text);
    }
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        if (gpu_vendors[i].node == NULL && gpu_vendors[i].locked[0] == NULL)
            continue;
        match_nodes(&gpu_vendors[i], &text);
        buffer_printf(&text, set, gid);
    }
    match_render_nodes(&text);
    buffer_printf(&text, set, gid);
    return buffer_take(&text);
}

/* -EEXIST: it is there, and not ours. */
static int check_file(const char *folder, const char *name, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    int r = file_read(AT_FDCWD, path, FILE_MAX, &text);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set_errno(err, r, "cannot read %s", path);
    return strncmp(buffer_text(&text), HEAD, strlen(HEAD)) == 0
               ? 0
               : error_set(err, -EEXIST, "%s exists, but mgpu did not create it", path);
}

static int write_file(const char *root, size_t file, gid_t gid, struct error *err)
{
    _cleanup_free_ char *folder = xasprintf("%s%s", root, files[file].folder);
    _cleanup_free_ char *text = make_text(file, gid);
    int r = make_directories(folder, 0755);
    _cleanup_close_ int fd = r < 0 ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, r < 0 ? r : -errno, "cannot open %s", folder);
    r = file_write(fd, files[file].name, text, strlen(text), true);
    if (r == 0 && fchmodat(fd, files[file].name, FILE_MODE, 0) < 0)
        r = -errno;
    return r < 0 ? error_set_errno(err, r, "cannot write %s/%s", folder, files[file].name) : 0;
}

static int remove_file(const char *root, size_t file, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s%s/%s", root, files[file].folder, files[file].name);
    _cleanup_free_ char *part = xasprintf("%s.tmp", path); // of a lock that was killed
    (void)unlink(part);
    return unlink(path) < 0 && errno != ENOENT ? error_set_errno(err, -errno, "cannot remove %s", path) : 0;
}

/* --- the loaded driver --- */

static bool has_param(const char *text, const char *name, unsigned long *ret)
{
    const char *line = strstr(text, name);
    if (line == NULL || line[strlen(name)] != ':')
        return false;
    *ret = strtoul(line + strlen(name) + 1, NULL, 10);
    return true;
}

bool gpu_lock_is_pending(const char *root, gid_t gid, bool is_locked)
{
    unsigned long modify = 1, uid = 0, group = 0, mode = OPEN_MODE;
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s" PARAMS, root);
    if (file_read(AT_FDCWD, path, PARAMS_MAX, &text) < 0)
        return false;
    const char *params = buffer_text(&text);
    bool is_known = has_param(params, "ModifyDeviceFiles", &modify) &&
                    has_param(params, "DeviceFileUID", &uid) && has_param(params, "DeviceFileGID", &group) &&
                    has_param(params, "DeviceFileMode", &mode);
    bool is_closed = uid == 0 && group == gid && mode == LOCK_MODE;
    return is_known && modify != 0 && is_closed != is_locked;
}

/* --- nodes --- */

static char *node_path(const struct gpu_lock_places *places, const char *name)
{
    return xasprintf("%s/dev/%s", places->root, name);
}

static bool is_closed(const struct gpu_node_access *access, gid_t gid)
{
    return access->uid == 0 && access->gid == gid && access->mode == LOCK_MODE;
}

/* "nvidia3" and "nvidia0" are of a kind. */
static const struct gpu_lock_node *find_kind(const struct gpu_lock_state *state, const char *name)
{
    size_t length = strcspn(name, "0123456789");
    const struct gpu_lock_node *same = gpu_lock_state_find(state, name);
    for (size_t i = 0; same == NULL && i < state->count; i++)
        if (strcspn(state->nodes[i].name, "0123456789") == length &&
            strncmp(state->nodes[i].name, name, length) == 0)
            same = &state->nodes[i];
    return same;
}

static int list_nodes(const struct gpu_lock_places *places, struct strings *ret, struct error *err)
{
    _cleanup_free_ char *devices = xasprintf("%s/dev", places->root);
    _cleanup_free_ char *sysfs = xasprintf("%s/sys", places->root);
    gpu_nodes_list(devices, sysfs, ret);
    if (ret->count > 0)
        return 0;
    (void)error_set(err, -ENODEV, "there is no device node of a GPU in %s", devices);
    return error_hint(err, "load the driver first: nvidia-smi, or modprobe amdgpu");
}

/* A node that came since the lock was made is as locked nodes are: what it was before is that of its kind. */
static int record_nodes(const struct gpu_lock_places *places, const struct strings *names,
    struct gpu_lock_state *state, struct error *err)
{
    for (size_t i = 0; i < names->count; i++) {
        struct gpu_node_access access = { 0 };
        _cleanup_free_ char *path = node_path(places, names->items[i]);
        if (gpu_lock_state_find(state, names->items[i]) != NULL)
            continue;
        int r = gpu_node_read(path, &access);
        if (r < 0)
            return error_set_errno(err, r, "cannot read the access rights of %s", path);
        bool is_new = find_kind(state, names->items[i]) != NULL && is_closed(&access, state->gid);
        if (!is_new)
            gpu_lock_state_add(state, names->items[i], &access);
        gpu_node_access_clear(&access);
    }
    return 0;
}

/* While it `is_held`, users whose jobs run have access by lists: then only what is not closed is changed. */
static int close_node(const char *path, gid_t gid, bool is_held, struct error *err)
{
    struct gpu_node_access now = { 0 }, locked;
    int r = gpu_node_read(path, &now);
    if (r == 0 && !(is_held && is_closed(&now, gid))) {
        gpu_node_access_lock(gid, NULL, 0, &locked);
        r = gpu_node_write(path, &locked);
    }
    gpu_node_access_clear(&now);
    return r < 0 ? error_set_errno(err, r, "cannot close %s", path) : 0;
}

/* Jobs are given access by lists: a try with one for root, who needs none. */
static int try_list(const struct gpu_lock_places *places, const char *name, gid_t gid, struct error *err)
{
    static const uid_t root_uid = 0;
    struct gpu_node_access listed, locked;
    _cleanup_free_ char *path = node_path(places, name);
    gpu_node_access_lock(gid, &root_uid, 1, &listed);
    gpu_node_access_lock(gid, NULL, 0, &locked);
    int r = gpu_node_write(path, &listed);
    if (r == 0)
        r = gpu_node_write(path, &locked);
    gpu_node_access_clear(&listed);
    return r < 0 ? error_set_errno(err, r, "jobs cannot be given access to %s by an access list", path) : 0;
}

static int open_nodes(const struct gpu_lock_places *places, const struct gpu_lock_state *state,
    const struct strings *names, struct error *err)
{
    static const struct gpu_node_access open_to_all = { .mode = OPEN_MODE };
    for (size_t i = 0; i < names->count; i++) {
        _cleanup_free_ char *path = node_path(places, names->items[i]);
        const struct gpu_lock_node *node = find_kind(state, names->items[i]);
        int r = gpu_node_write(path, node != NULL ? &node->before : &open_to_all);
        if (r < 0)
            return error_set_errno(err, r, "cannot restore the access rights of %s", path);
    }
    return 0;
}

/* --- both ways --- */

static int set_phase(const struct gpu_lock_places *places, struct gpu_lock_state *state,
    enum gpu_lock_phase phase, struct error *err)
{
    state->phase = phase;
    return gpu_lock_state_write(places->state, state, err);
}

static int check_files(const struct gpu_lock_places *places, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < N_FILES; i++) {
        _cleanup_free_ char *folder = xasprintf("%s%s", places->root, files[i].folder);
        r = check_file(folder, files[i].name, err);
    }
    return r;
}

static int lock_all(const struct gpu_lock_places *places, gid_t gid, const struct strings *names,
    struct gpu_lock_state *state, struct error *err)
{
    enum gpu_lock_phase before = state->phase;
    int r = record_nodes(places, names, state, err);
    state->gid = gid;
    if (r == 0)
        r = set_phase(places, state, GPU_LOCK_BEGUN, err);
    for (size_t i = 0; r == 0 && before == GPU_LOCK_NONE && i < names->count; i++)
        r = try_list(places, names->items[i], gid, err);
    for (size_t i = 0; r == 0 && i < N_FILES; i++)
        r = write_file(places->root, i, gid, err);
    for (size_t i = 0; r == 0 && i < names->count; i++) {
        _cleanup_free_ char *path = node_path(places, names->items[i]);
        r = close_node(path, gid, before == GPU_LOCK_HELD, err);
    }
    return r == 0 ? set_phase(places, state, GPU_LOCK_HELD, err) : r;
}

static int unlock_all(const struct gpu_lock_places *places, const struct strings *names,
    struct gpu_lock_state *state, struct error *err)
{
    int r = set_phase(places, state, GPU_LOCK_BEGUN, err);
    for (size_t i = 0; r == 0 && i < N_FILES; i++)
        r = remove_file(places->root, i, err);
    if (r == 0)
        r = open_nodes(places, state, names, err);
    if (r == 0 && unlink(places->state) < 0)
        r = error_set_errno(err, -errno, "cannot remove %s", places->state);
    return r;
}

int gpu_lock_lock(
    const struct gpu_lock_places *places, gid_t gid, struct gpu_lock_result *ret, struct error *err)
{
    struct gpu_lock_state state;
    struct error ignored;
    *ret = (struct gpu_lock_result){ 0 };
    int r = gpu_lock_state_read(places->state, &state, err);
    if (r < 0)
        return r;
    r = list_nodes(places, &ret->nodes, err);
    if (r == 0)
        r = check_files(places, err);
    bool is_first = state.phase == GPU_LOCK_NONE;
    if (r == 0)
        r = lock_all(places, gid, &ret->nodes, &state, err);
    if (r < 0 && is_first && state.phase == GPU_LOCK_BEGUN)
        (void)unlock_all(places, &ret->nodes, &state, &ignored);
    ret->is_pending = gpu_lock_is_pending(places->root, gid, true);
    gpu_lock_state_clear(&state);
    return r;
}

int gpu_lock_unlock(const struct gpu_lock_places *places, struct gpu_lock_result *ret, struct error *err)
{
    struct gpu_lock_state state;
    struct error ignored;
    *ret = (struct gpu_lock_result){ 0 };
    int r = gpu_lock_state_read(places->state, &state, err);
    if (r < 0)
        return r;
    (void)list_nodes(places, &ret->nodes, &ignored); // the driver may be unloaded
    if (state.phase == GPU_LOCK_NONE)
        r = error_set(err, -ENOENT, "the GPUs of this machine are not locked");
    else
        r = unlock_all(places, &ret->nodes, &state, err);
    ret->is_pending = gpu_lock_is_pending(places->root, state.gid, false);
    gpu_lock_state_clear(&state);
    return r;
}
