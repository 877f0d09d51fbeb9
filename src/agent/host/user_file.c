/* SPDX-License-Identifier: MIT */
/* The access list is written in the kernel's format (linux/posix_acl_xattr.h), because libacl would be needed
 * only for this. */
#include "agent/host/user_file.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL_ATTRIBUTE "system.posix_acl_access"
#define ACL_VERSION   2U
#define ACL_NO_ID     UINT32_MAX

enum acl_tag { ACL_OWNER = 0x01, ACL_USER = 0x02, ACL_GROUP = 0x04, ACL_MASK = 0x10, ACL_OTHER = 0x20 };

struct acl_entry {
    uint16_t tag, permissions;
    uint32_t id;
};

struct acl {
    uint32_t version;
    struct acl_entry entries[5]; // in order of their tags
};

static struct acl_entry entry(enum acl_tag tag, unsigned permissions, uint32_t id)
{
    return (struct acl_entry){ htole16((uint16_t)tag), htole16((uint16_t)permissions), htole32(id) };
}

int user_file_share(int fd, uid_t uid, gid_t gid, mode_t mode)
{
    unsigned permissions = (mode >> 6) & 7U;
    const struct acl acl = { .version = htole32(ACL_VERSION),
        .entries = { entry(ACL_OWNER, permissions, ACL_NO_ID), entry(ACL_USER, permissions, uid),
            entry(ACL_GROUP, 0, ACL_NO_ID), entry(ACL_MASK, permissions, ACL_NO_ID),
            entry(ACL_OTHER, 0, ACL_NO_ID) } };
    if (fchmod(fd, mode) < 0)
        return -errno;
    if (geteuid() != 0 || uid == 0)
        return 0;
    if (fsetxattr(fd, ACL_ATTRIBUTE, &acl, sizeof(acl), 0) == 0)
        return 0;
    if (errno != ENOTSUP)
        return -errno;
    return fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}
