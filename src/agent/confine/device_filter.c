/* SPDX-License-Identifier: MIT */
/*
 * Programs are loaded and attached with bpf(2). The name of a program is the checksum of its instructions, so
 * a filter already attached to a cgroup is found by its name and attached only once. Other programs on the
 * cgroup, or above it, remain effective: access denied by any of them is denied.
 */
#include "agent/confine/device_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/confine/device_program.h"
#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"

#define ATTACHED_MAX 64U // programs of one kind on one cgroup; the kernel allows no more

struct filter {
    struct device_program program;
    uint32_t sum;
    char name[BPF_OBJ_NAME_LEN];
};

struct kept_filter {
    struct filter filter;
    int fd;
    uint32_t id; // the kernel's; 0: unknown
};

static void make_filter(const struct device_rule *rules, size_t count, struct filter *ret)
{
    device_program_build(rules, count, &ret->program);
    ret->sum = crc32c(0, ret->program.instructions, ret->program.length * sizeof(*ret->program.instructions));
    (void)snprintf(ret->name, sizeof(ret->name), "mgpu_%08" PRIx32, ret->sum);
}

static void clear_filter(struct filter *filter)
{
    device_program_clear(&filter->program);
}

/* --- the kernel --- */

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    long r = syscall(SYS_bpf, command, attributes, sizeof(*attributes));
    return r < 0 ? -errno : (int)r;
}

static int load(const struct filter *filter)
{
    static const char license[] = "MIT";
    union bpf_attr attributes = {
        .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
        .insns = (uint64_t)(uintptr_t)filter->program.instructions,
        .insn_cnt = (uint32_t)filter->program.length,
        .license = (uint64_t)(uintptr_t)license,
    };
    memcpy(attributes.prog_name, filter->name, sizeof(attributes.prog_name));
    return call_bpf(BPF_PROG_LOAD, &attributes);
}

static int attach(int cgroup_fd, int program_fd)
{
    union bpf_attr attributes = {
        .target_fd = (uint32_t)cgroup_fd,
        .attach_bpf_fd = (uint32_t)program_fd,
        .attach_type = BPF_CGROUP_DEVICE,
        .attach_flags = BPF_F_ALLOW_MULTI,
    };
    return call_bpf(BPF_PROG_ATTACH, &attributes);
}

static int detach(int cgroup_fd, int program_fd)
{
    union bpf_attr attributes = {
        .target_fd = (uint32_t)cgroup_fd,
        .attach_bpf_fd = (uint32_t)program_fd,
        .attach_type = BPF_CGROUP_DEVICE,
    };
    return call_bpf(BPF_PROG_DETACH, &attributes);
}

static bool read_about(int program_fd, struct bpf_prog_info *ret)
{
    *ret = (struct bpf_prog_info){ 0 };
    union bpf_attr attributes = { .info = {
                                      .bpf_fd = (uint32_t)program_fd,
                                      .info_len = sizeof(*ret),
                                      .info = (uint64_t)(uintptr_t)ret,
                                  } };
    return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) >= 0;
}

static bool has_name(uint32_t program_id, const char *name)
{
    struct bpf_prog_info about;
    union bpf_attr which = { .prog_id = program_id };
    _cleanup_close_ int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &which);
    return fd >= 0 && read_about(fd, &about) && strncmp(about.name, name, sizeof(about.name)) == 0;
}

/* 1 when the program `known_id` (0: none), or one of that name, is attached to the cgroup itself, 0 when none
 * is. */
static int is_attached(int cgroup_fd, uint32_t known_id, const char *name)
{
    uint32_t ids[ATTACHED_MAX] = { 0 };
    union bpf_attr attributes = { .query = {
                                      .target_fd = (uint32_t)cgroup_fd,
                                      .attach_type = BPF_CGROUP_DEVICE,
                                      .prog_ids = (uint64_t)(uintptr_t)ids,
                                      .prog_cnt = ATTACHED_MAX,
                                  } };
    int r = call_bpf(BPF_PROG_QUERY, &attributes);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < attributes.query.prog_cnt && i < ATTACHED_MAX; i++)
        if (ids[i] == known_id || has_name(ids[i], name))
            return 1;
    return 0;
}

/* --- programs that are kept --- */

static bool is_same_program(const struct filter *a, const struct filter *b)
{
    return a->program.length == b->program.length &&
           memcmp(a->program.instructions, b->program.instructions,
               a->program.length * sizeof(*a->program.instructions)) == 0;
}

static void drop_kept(struct kept_filter *kept)
{
    if (kept == NULL)
        return;
    closep(&kept->fd);
    clear_filter(&kept->filter);
    free(kept);
}

void device_filters_clear(struct device_filters *filters)
{
    for (size_t i = 0; i < DEVICE_FILTERS_KEPT; i++)
        drop_kept(take_ptr(filters->slots[i]));
}

static struct kept_filter **slot_of(struct device_filters *filters, const struct filter *filter)
{
    return &filters->slots[filter->sum % DEVICE_FILTERS_KEPT];
}

static const struct kept_filter *find_kept(struct device_filters *filters, const struct filter *filter)
{
    const struct kept_filter *kept = *slot_of(filters, filter);
    return kept != NULL && is_same_program(&kept->filter, filter) ? kept : NULL;
}

/* Takes the filter's instructions over. */
static int load_and_keep(struct device_filters *filters, struct filter *filter)
{
    struct kept_filter **slot = slot_of(filters, filter);
    struct bpf_prog_info about;
    int fd = load(filter);
    if (fd < 0)
        return fd;
    drop_kept(*slot);
    *slot = xcalloc(1, sizeof(**slot));
    **slot = (struct kept_filter){ .filter = *filter, .fd = fd, .id = read_about(fd, &about) ? about.id : 0 };
    filter->program = (struct device_program){ 0 };
    return fd;
}

/* --- public functions --- */

static int put_on(struct device_filters *filters, int cgroup_fd, struct filter *filter, struct error *err)
{
    const struct kept_filter *kept = find_kept(filters, filter);
    int program_fd = kept != NULL ? kept->fd : load_and_keep(filters, filter);
    if (program_fd < 0)
        return error_set_errno(err, program_fd, "cannot load the device filter");
    int r = attach(cgroup_fd, program_fd);
    return r < 0 ? error_set_errno(err, r, "cannot attach the device filter") : 1;
}

int device_filter_apply(struct device_filters *filters, int cgroup_fd, const struct device_rule *rules,
    size_t count, struct error *err)
{
    _cleanup_(clear_filter) struct filter filter;
    make_filter(rules, count, &filter);
    const struct kept_filter *kept = find_kept(filters, &filter);
    int r = is_attached(cgroup_fd, kept != NULL ? kept->id : 0, filter.name);
    if (r < 0)
        return error_set_errno(err, r, "cannot determine the attached device filter");
    return r == 1 ? 0 : put_on(filters, cgroup_fd, &filter, err);
}

int device_filter_probe(int cgroup_fd, struct error *err)
{
    _cleanup_(clear_filter) struct filter filter;
    make_filter(NULL, 0, &filter);
    _cleanup_close_ int program_fd = load(&filter);
    int r = program_fd < 0 ? program_fd : attach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "the kernel does not allow device filters");
    int found = is_attached(cgroup_fd, 0, filter.name);
    r = detach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "cannot remove a device filter");
    return found == 1 ? 0 : error_set(err, -EPERM, "the kernel does not report attached device filters");
}
