/* SPDX-License-Identifier: MIT */
/*
 * The run directory exists from the first start after a boot, and also while the daemon is stopped: its jobs
 * may still be running. The agent's directory in the state directory also survives a reboot.
 */
#include "base/system_mgpud.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/log.h"
#include "base/memory.h"

#define LEAVE_MS      3000 // for all claims: longest delay by a process that binds a name without listening
#define LEAVE_POLL_MS 20
#define CLAIM_BACKLOG 4096 // never accepted: each program that asks who claimed a GPU stays in the queue

const char *system_mgpud_trace(void)
{
    static const char *const traces[] = { SYSTEM_RUN_DIR, SYSTEM_STATE_DIR "/node" };
    for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
        if (access(traces[i], F_OK) == 0 || errno == EACCES)
            return traces[i];
    return NULL;
}

bool is_socket_answered(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return false;
    memcpy(address.sun_path, path, strlen(path));
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* EAGAIN: the backlog is full, so connect() would block. */
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN);
}

/* --- claims --- */

static socklen_t claim_name(dev_t device, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(
        ret->sun_path + 1, sizeof(ret->sun_path) - 1, "mgpu-gpu-%u:%u", major(device), minor(device));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Finds the owner of the claim: 0, or -errno. */
static int find_holder(const struct sockaddr_un *name, socklen_t length, struct ucred *ret)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = sizeof(*ret);
    bool is_known = fd >= 0 && connect(fd, (const struct sockaddr *)name, length) == 0 &&
                    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0;
    return is_known ? 0 : -errno;
}

/* False while another process has it, which is in `holder` if it can be identified. Waits for a process that
 * does not listen yet or any more, or that has ended and left a child that it had just forked. */
static bool claim_name_for(
    int fd, const struct sockaddr_un *name, socklen_t length, int64_t until_ms, struct ucred *holder)
{
    while (bind(fd, (const struct sockaddr *)name, length) < 0 && errno == EADDRINUSE) {
        int r = find_holder(name, length, holder);
        bool has_left = r == 0 && holder->pid > 0 && kill(holder->pid, 0) < 0 && errno == ESRCH;
        if ((r != -ECONNREFUSED && !has_left) || clock_boot_ms() >= until_ms)
            return has_left;
        (void)poll(NULL, 0, LEAVE_POLL_MS);
    }
    return true;
}

/* Among several holders root is named: only root's claim keeps root from starting. */
static void note_shared(struct gpu_claims *claims, const char *path, const struct ucred *holder)
{
    bool is_root_noted = claims->pid > 0 && claims->uid == 0;
    strings_add(&claims->shared, path);
    if (holder->pid <= 0 || is_root_noted)
        return;
    claims->pid = holder->pid;
    claims->uid = holder->uid;
}

static void claim(const char *path, int64_t until_ms, struct gpu_claims *claims)
{
    struct stat node;
    struct sockaddr_un name;
    struct ucred holder = { 0 };
    if (stat(path, &node) < 0 || !S_ISCHR(node.st_mode))
        return;
    socklen_t length = claim_name(node.st_rdev, &name);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (!claim_name_for(fd, &name, length, until_ms, &holder)) {
        note_shared(claims, path, &holder);
    } else if (listen(fd, CLAIM_BACKLOG) == 0) {
        claims->fds = xreallocarray(claims->fds, claims->count + 1, sizeof(*claims->fds));
        claims->fds[claims->count++] = take_fd(&fd);
    }
}

/* Claims the nodes whose names are this word and a number. */
static void claim_all(const char *dir, const char *word, int64_t until_ms, struct gpu_claims *claims)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, NULL, versionsort);
    for (int i = 0; i < n; i++) {
        const char *number = entries[i]->d_name + strlen(word);
        if (strncmp(entries[i]->d_name, word, strlen(word)) == 0 && number[0] != '\0' &&
            strspn(number, "0123456789") == strlen(number)) {
            _cleanup_free_ char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
            claim(path, until_ms, claims);
        }
        free(entries[i]);
    }
    free(entries);
}

void gpu_claims_take(const char *device_dir, struct gpu_claims *ret)
{
    *ret = (struct gpu_claims){ 0 };
    _cleanup_free_ char *dri = xasprintf("%s/dri", device_dir);
    int64_t until_ms = clock_boot_ms() + LEAVE_MS;
    bool has_render_nodes = false; // otherwise these are displays
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const struct gpu_vendor *vendor = &gpu_vendors[i];
        if (vendor->node != NULL)
            claim_all(device_dir, vendor->node, until_ms, ret);
        else if (vendor->control[0] != NULL) {
            _cleanup_free_ char *control = xasprintf("%s/%s", device_dir, vendor->control[0]);
            has_render_nodes |= access(control, F_OK) == 0;
        }
    }
    if (has_render_nodes)
        claim_all(dri, "renderD", until_ms, ret);
}

int gpu_claims_refuse(const struct gpu_claims *claims, bool is_asked, struct error *err)
{
    if (claims->shared.count == 0)
        return 0;
    const char *last = claims->shared.items[claims->shared.count - 1];
    _cleanup_free_ char *who =
        claims->pid > 0 ? xasprintf(" (pid %d, of uid %u)", (int)claims->pid, claims->uid) : xstrdup("");
    _cleanup_free_ char *gpus =
        claims->shared.count == 1 ? xstrdup(last) : xasprintf("%s to %s", claims->shared.items[0], last);
    bool is_of_root = claims->pid > 0 && claims->uid == 0;
    if (is_asked || (geteuid() == 0 && !is_of_root)) {
        log_warning("another mgpu on this machine%s also allocates %s: its jobs may get the GPUs, CPUs and "
                    "memory of jobs of this one",
            who, gpus);
        return 0;
    }
    (void)error_set(err, -EBUSY,
        "another mgpu on this machine%s allocates %s: a second one would allocate the same GPUs, CPUs and "
        "memory",
        who, gpus);
    return error_hint(err, "use that one: mgpu run ... To start your own as well, name its GPUs: --gpus "
                           "sim:8x24G, " GPU_VENDOR_WORDS "or none");
}

void gpu_claims_clear(struct gpu_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++)
        closep(&claims->fds[i]);
    free(claims->fds);
    strings_clear(&claims->shared);
    *claims = (struct gpu_claims){ 0 };
}
