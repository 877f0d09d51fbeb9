/* SPDX-License-Identifier: MIT */
/*
 * Programs are loaded and attached with bpf(2). The name of a program is the checksum of its instructions, so
 * a filter already attached to a cgroup is found by its name and attached only once, and another one of ours
 * is removed. Other programs on the cgroup, or above it, remain effective: access denied by any of them is
 * denied.
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
#include "base/memory.h"

#define ATTACHED_MAX 64U // programs of one kind on one cgroup; the kernel allows no more
#define NAME_PREFIX  "mgpu_"

struct filter {
    struct device_program program;
    uint32_t sum;
    char name[BPF_OBJ_NAME_LEN];
};

struct kept_filter {
    struct filter filter;
    int fd;
    uint32_t id; // the kernel's id; 0: unknown
};

static void make_filter(const struct device_rule *rules, size_t count, struct filter *ret)
{
    device_program_build(rules, count, &ret->program);
    ret->sum = crc32c(0, ret->program.instructions, ret->program.length * sizeof(*ret->program.instructions));
    (void)snprintf(ret->name, sizeof(ret->name), NAME_PREFIX "%08" PRIx32, ret->sum);
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

/* The programs attached to a cgroup itself. */
struct attached {
    uint32_t ids[ATTACHED_MAX];
    size_t count;
};

static int list_attached(int cgroup_fd, struct attached *ret)
{
    *ret = (struct attached){ 0 };
    union bpf_attr attributes = { .query = {
                                      .target_fd = (uint32_t)cgroup_fd,
                                      .attach_type = BPF_CGROUP_DEVICE,
                                      .prog_ids = (uint64_t)(uintptr_t)ret->ids,
                                      .prog_cnt = ATTACHED_MAX,
                                  } };
    int r = call_bpf(BPF_PROG_QUERY, &attributes);
    if (r < 0)
        return r;
    ret->count = attributes.query.prog_cnt < ATTACHED_MAX ? attributes.query.prog_cnt : ATTACHED_MAX;
    return 0;
}

/* Opens the program and reads its name; a negative errno if it no longer exists. */
static int open_program(uint32_t id, struct bpf_prog_info *ret_about)
{
    union bpf_attr which = { .prog_id = id };
    _cleanup_close_ int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &which);
    if (fd < 0)
        return fd;
    return read_about(fd, ret_about) ? take_fd(&fd) : -ESRCH;
}

static bool has_name(const struct bpf_prog_info *about, const char *name)
{
    return strncmp(about->name, name, sizeof(about->name)) == 0;
}

/* True if the program `known_id` (0: none), or one of that name, is attached. */
static bool is_attached(const struct attached *attached, uint32_t known_id, const char *name)
{
    for (size_t i = 0; i < attached->count; i++) {
        struct bpf_prog_info about;
        if (attached->ids[i] == known_id)
            return true;
        _cleanup_close_ int fd = open_program(attached->ids[i], &about);
        if (fd >= 0 && has_name(&about, name))
            return true;
    }
    return false;
}

/* Removes our other filters, which belong to GPUs that the attempt had before. */
static int detach_others(int cgroup_fd, const struct attached *attached, uint32_t known_id, const char *name)
{
    for (size_t i = 0; i < attached->count; i++) {
        struct bpf_prog_info about;
        if (attached->ids[i] == known_id)
            continue;
        _cleanup_close_ int fd = open_program(attached->ids[i], &about);
        if (fd < 0 || has_name(&about, name) || strncmp(about.name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
            continue;
        int r = detach(cgroup_fd, fd);
        if (r < 0)
            return r;
    }
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

/* Takes ownership of the filter's instructions. */
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

/* The new filter is attached first: meanwhile, only nodes that both filters allow can be opened. */
int device_filter_apply(struct device_filters *filters, int cgroup_fd, const struct device_rule *rules,
    size_t count, struct error *err)
{
    struct attached attached;
    _cleanup_(clear_filter) struct filter filter;
    make_filter(rules, count, &filter);
    const struct kept_filter *kept = find_kept(filters, &filter);
    uint32_t known_id = kept != NULL ? kept->id : 0;
    int r = list_attached(cgroup_fd, &attached);
    if (r < 0)
        return error_set_errno(err, r, "cannot determine the attached device filter");
    bool is_there = is_attached(&attached, known_id, filter.name);
    r = is_there ? 0 : put_on(filters, cgroup_fd, &filter, err);
    if (r < 0)
        return r;
    r = detach_others(cgroup_fd, &attached, known_id, filter.name);
    return r < 0 ? error_set_errno(err, r, "cannot remove the device filter of other GPUs") : !is_there;
}

int device_filter_probe(int cgroup_fd, struct error *err)
{
    struct attached attached;
    _cleanup_(clear_filter) struct filter filter;
    make_filter(NULL, 0, &filter);
    _cleanup_close_ int program_fd = load(&filter);
    int r = program_fd < 0 ? program_fd : attach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "the kernel does not allow device filters");
    bool is_found = list_attached(cgroup_fd, &attached) == 0 && is_attached(&attached, 0, filter.name);
    r = detach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "cannot remove a device filter");
    return is_found ? 0 : error_set(err, -EPERM, "the kernel does not report attached device filters");
}
