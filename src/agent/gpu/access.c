/* SPDX-License-Identifier: MIT */
/*
 * Access is granted by a list on the node and not by a group of the job: with a group, a setgid program
 * created by a job could open the GPUs even after the job. The lists are derived from the attempts known
 * here, so a restarted agent corrects those of the one before it.
 */
#include "agent/gpu/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "gpulock/lock.h"
#include "gpulock/state.h"
#include "job/event.h"

struct user_of_gpus {
    struct spool_id id;
    uid_t uid;
    struct record_list grants;
};

struct gpu_access {
    char *state, *device_dir;
    const struct gpu_devices *devices;
    struct user_of_gpus *users;
    size_t count;
    int failure; // the last failure that was logged
};

struct gpu_access *gpu_access_new(
    const char *state_dir, const char *device_dir, const struct gpu_devices *devices)
{
    if (geteuid() != 0)
        return NULL;
    struct gpu_access *access = xcalloc(1, sizeof(*access));
    access->state = xasprintf("%s/" GPU_LOCK_STATE, state_dir);
    access->device_dir = xstrdup(device_dir != NULL ? device_dir : "/dev");
    access->devices = devices;
    return access;
}

void gpu_access_free(struct gpu_access *access)
{
    if (access == NULL)
        return;
    for (size_t i = 0; i < access->count; i++)
        gpu_grants_clear(&access->users[i].grants);
    free(access->users);
    free(access->state);
    free(access->device_dir);
    free(access);
}

static bool needs(const struct gpu_access *access, const struct user_of_gpus *user, const char *path)
{
    _cleanup_strings_ struct strings paths = { 0 };
    bool is_found = false;
    gpu_devices_paths(access->devices, &user->grants, &paths);
    for (size_t i = 0; i < paths.count; i++)
        is_found |= strcmp(paths.items[i], path) == 0;
    return is_found;
}

static int apply_to(const struct gpu_access *access, gid_t gid, const char *name)
{
    size_t count = 0;
    struct gpu_node_access wanted;
    uid_t *uids = xcalloc(access->count + 1, sizeof(*uids));
    _cleanup_free_ char *path = xasprintf("%s/%s", access->device_dir, name);
    for (size_t i = 0; i < access->count; i++)
        if (access->users[i].uid != 0 && needs(access, &access->users[i], path))
            uids[count++] = access->users[i].uid;
    gpu_node_access_lock(gid, uids, count, &wanted);
    int r = gpu_node_write(path, &wanted);
    gpu_node_access_clear(&wanted);
    free(uids);
    return r == -ENOENT ? 0 : r; // the driver has just been unloaded
}

static int apply(const struct gpu_access *access, struct error *err)
{
    struct gpu_lock_state state;
    struct strings names = { 0 };
    int r = gpu_lock_state_read(access->state, &state, err);
    if (r < 0)
        return r;
    if (state.phase == GPU_LOCK_HELD)
        gpu_nodes_list(access->device_dir, "/sys", &names);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        r = apply_to(access, state.gid, names.items[i]);
        if (r < 0)
            (void)error_set_errno(
                err, r, "cannot set the access rights of %s/%s", access->device_dir, names.items[i]);
    }
    strings_clear(&names);
    gpu_lock_state_clear(&state);
    return r;
}

static struct user_of_gpus *find(const struct gpu_access *access, const struct spool_id *id)
{
    for (size_t i = 0; i < access->count; i++)
        if (spool_id_equal(&access->users[i].id, id))
            return &access->users[i];
    return NULL;
}

int gpu_access_take(struct gpu_access *access, const struct spool_id *id, uid_t uid,
    const struct record_list *grants, struct error *err)
{
    if (access == NULL || grants->count == 0)
        return 0;
    if (find(access, id) == NULL) {
        access->users = xreallocarray(access->users, access->count + 1, sizeof(*access->users));
        access->users[access->count] = (struct user_of_gpus){ .id = *id, .uid = uid };
        gpu_grants_copy(&access->users[access->count++].grants, grants);
    }
    return apply(access, err);
}

void gpu_access_drop(struct gpu_access *access, const struct spool_id *id)
{
    struct user_of_gpus *user = access != NULL ? find(access, id) : NULL;
    if (user == NULL)
        return;
    gpu_grants_clear(&user->grants);
    *user = access->users[--access->count];
    gpu_access_refresh(access);
}

void gpu_access_refresh(struct gpu_access *access)
{
    struct error err = { 0 };
    int r = access != NULL ? apply(access, &err) : 0;
    if (r < 0 && r != access->failure)
        log_error("the GPUs' device nodes are not locked: %s", err.message);
    if (access != NULL)
        access->failure = r;
}

char *gpu_access_describe(const char *state_dir, bool *ret_is_on, const char **ret_fix)
{
    struct gpu_lock_state state;
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/" GPU_LOCK_STATE, state_dir);
    *ret_is_on = false;
    *ret_fix = "mgpu gpu lock, as root on this node";
    if (gpu_lock_state_read(path, &state, &err) < 0)
        return xstrdup(err.message);
    enum gpu_lock_phase phase = state.phase;
    gid_t gid = state.gid;
    gpu_lock_state_clear(&state);
    if (phase == GPU_LOCK_NONE)
        return xstrdup("users who log in can open GPUs without a job");
    if (phase == GPU_LOCK_BEGUN) {
        *ret_fix = "run mgpu gpu lock, or mgpu gpu unlock, again";
        return xstrdup("the lock of the GPUs' device nodes was interrupted");
    }
    *ret_is_on = !gpu_lock_is_pending("", gid, true);
    *ret_fix = "load the driver again, or restart this machine";
    if (!*ret_is_on)
        return xstrdup(
            "the lock of the device nodes is not complete: the NVIDIA driver was loaded before it, and "
            "its programs open them again");
    return gid == 0 ? xstrdup("only jobs and root can open GPUs")
                    : xasprintf("only jobs, root and members of group %u can open GPUs", gid);
}
