/* SPDX-License-Identifier: MIT */
/*
 * MIG's nodes (nvidia-caps) and those of unified memory (nvidia-uvm) are left alone: they give no access to a
 * GPU without its node. nvidia-modprobe opens nvidia-uvm to all users at each start of CUDA, whatever the
 * module's options say, and while the agent closed it again a job's open could fail. Access lists are
 * written in the form of the kernel's extended attribute, which needs no library.
 */
#include "gpulock/nodes.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"

#define ACL_NAME       "system.posix_acl_access"
#define ACL_VERSION    2U
#define ACL_USER_OBJ   0x01U
#define ACL_USER       0x02U
#define ACL_GROUP_OBJ  0x04U
#define ACL_MASK       0x10U
#define ACL_OTHER      0x20U
#define ACL_READ_WRITE 6U
#define ACL_NO_ID      0xffffffffU
#define ACL_MAX        65536U // bytes, of the kernel
#define MODE_LOCKED    0660
#define MODE_BITS      07777U
#define VENDOR_MAX     64U // bytes of the file

void gpu_node_access_clear(struct gpu_node_access *access)
{
    buffer_clear(&access->acl);
    *access = (struct gpu_node_access){ 0 };
}

/* --- which --- */

static bool is_digits(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool is_node(const char *name)
{
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const char *own = gpu_vendors[i].node;
        if (gpu_vendor_names(gpu_vendors[i].locked, name) ||
            (own != NULL && strncmp(name, own, strlen(own)) == 0 && is_digits(name + strlen(own))))
            return true;
    }
    return false;
}

static bool is_render_node(const char *name, const char *sysfs)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (strncmp(name, "renderD", strlen("renderD")) != 0 || !is_digits(name + strlen("renderD")))
        return false;
    _cleanup_free_ char *path = xasprintf("%s/class/drm/%s/device/vendor", sysfs, name);
    if (file_read(AT_FDCWD, path, VENDOR_MAX, &text) < 0)
        return false;
    unsigned long vendor = strtoul(buffer_text(&text), NULL, 16);
    for (size_t i = 0; i < gpu_vendors_count; i++)
        if (vendor != 0 && gpu_vendors[i].pci_vendor == vendor)
            return true;
    return false;
}

static void list_in(const char *device_dir, const char *below, const char *sysfs, struct strings *ret)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", device_dir, below);
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        bool is_one = *below == '\0' ? is_node(name) : is_render_node(name, sysfs);
        if (is_one)
            strings_take(ret, xasprintf("%s%s", below, name));
    }
    if (dir != NULL)
        (void)closedir(dir);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void gpu_nodes_list(const char *device_dir, const char *sysfs, struct strings *ret)
{
    list_in(device_dir, "", sysfs, ret);
    list_in(device_dir, "dri/", sysfs, ret);
    if (ret->count > 1)
        qsort(ret->items, ret->count, sizeof(char *), compare);
}

/* --- who --- */

/* Without following a link, which a user could have made where a node was. */
static int open_node(const char *path, struct stat *ret)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, ret) < 0 || !S_ISCHR(ret->st_mode)) {
        (void)close(fd);
        return -ENODEV;
    }
    return fd;
}

/* An O_PATH descriptor has no attributes of its own. */
static void name_of(int fd, char name[static 32])
{
    (void)snprintf(name, 32, "/proc/self/fd/%d", fd);
}

int gpu_node_read(const char *path, struct gpu_node_access *ret)
{
    struct stat status;
    char name[32], list[ACL_MAX];
    _cleanup_close_ int fd = open_node(path, &status);
    if (fd < 0)
        return fd;
    name_of(fd, name);
    ssize_t n = getxattr(name, ACL_NAME, list, sizeof(list));
    if (n < 0 && errno != ENODATA && errno != EOPNOTSUPP)
        return -errno;
    *ret = (struct gpu_node_access){
        .uid = status.st_uid, .gid = status.st_gid, .mode = status.st_mode & MODE_BITS
    };
    if (n > 0)
        buffer_append(&ret->acl, list, (size_t)n);
    return 0;
}

static bool is_same(const struct gpu_node_access *a, const struct gpu_node_access *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->mode == b->mode && a->acl.length == b->acl.length &&
           (a->acl.length == 0 || memcmp(a->acl.bytes, b->acl.bytes, a->acl.length) == 0);
}

/* A list has the mode in it, and replaces list and mode at once: a job that opens the node meanwhile, which
 * the driver's programs may just have opened to all users, always has access. */
static int write_all_of(const char *name, const struct gpu_node_access *access)
{
    if (chown(name, access->uid, access->gid) < 0)
        return -errno;
    if (access->acl.length > 0)
        return setxattr(name, ACL_NAME, access->acl.bytes, access->acl.length, 0) < 0 ? -errno : 0;
    if (removexattr(name, ACL_NAME) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
        return -errno;
    return chmod(name, access->mode) < 0 ? -errno : 0;
}

int gpu_node_write(const char *path, const struct gpu_node_access *access)
{
    struct gpu_node_access now = { 0 };
    struct stat status;
    char name[32];
    int r = gpu_node_read(path, &now);
    bool is_done = r == 0 && is_same(&now, access);
    gpu_node_access_clear(&now);
    if (r < 0 || is_done)
        return r;
    _cleanup_close_ int fd = open_node(path, &status);
    if (fd < 0)
        return fd;
    name_of(fd, name);
    return write_all_of(name, access);
}

static void add_entry(struct buffer *list, uint16_t tag, uint16_t permission, uint32_t id)
{
    const uint16_t words[2] = { htole16(tag), htole16(permission) };
    const uint32_t number = htole32(id);
    buffer_append(list, words, sizeof(words));
    buffer_append(list, &number, sizeof(number));
}

static int compare_uids(const void *a, const void *b)
{
    uid_t left = *(const uid_t *)a, right = *(const uid_t *)b;
    return (left > right) - (left < right);
}

void gpu_node_access_lock(gid_t gid, const uid_t *uids, size_t count, struct gpu_node_access *ret)
{
    const uint32_t version = htole32(ACL_VERSION);
    *ret = (struct gpu_node_access){ .gid = gid, .mode = MODE_LOCKED };
    if (count == 0)
        return;
    uid_t *sorted = xcalloc(count, sizeof(*sorted));
    memcpy(sorted, uids, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_uids);
    buffer_append(&ret->acl, &version, sizeof(version));
    add_entry(&ret->acl, ACL_USER_OBJ, ACL_READ_WRITE, ACL_NO_ID);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            add_entry(&ret->acl, ACL_USER, ACL_READ_WRITE, sorted[i]);
    add_entry(&ret->acl, ACL_GROUP_OBJ, ACL_READ_WRITE, ACL_NO_ID);
    add_entry(&ret->acl, ACL_MASK, ACL_READ_WRITE, ACL_NO_ID);
    add_entry(&ret->acl, ACL_OTHER, 0, ACL_NO_ID);
    free(sorted);
}
