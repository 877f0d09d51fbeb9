/* SPDX-License-Identifier: MIT */
/*
 * Programs are loaded and attached with bpf(2) itself. The name of a program is made of the checksum of its
 * instructions: a filter that a cgroup has already is found by its name, so that asking twice is cheap and
 * one cgroup gets the same filter only once. Programs of others on the cgroup, or above it, go on as they
 * are: what one of them denies is denied.
 */
#include "agent/device_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/device_program.h"
#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"

#define ATTACHED_MAX 64U // programs of one kind on one cgroup; the kernel allows no more

struct filter {
    struct device_program program;
    char name[BPF_OBJ_NAME_LEN];
};

static void make_filter(const struct device_rule *rules, size_t count, struct filter *ret)
{
    device_program_build(rules, count, &ret->program);
    uint32_t sum =
        crc32c(0, ret->program.instructions, ret->program.length * sizeof(*ret->program.instructions));
    (void)snprintf(ret->name, sizeof(ret->name), "mgpu_%08" PRIx32, sum);
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

static bool has_name(uint32_t program_id, const char *name)
{
    struct bpf_prog_info about = { 0 };
    union bpf_attr which = { .prog_id = program_id };
    _cleanup_close_ int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &which);
    union bpf_attr attributes = { .info = {
                                      .bpf_fd = (uint32_t)fd,
                                      .info_len = sizeof(about),
                                      .info = (uint64_t)(uintptr_t)&about,
                                  } };
    return fd >= 0 && call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) >= 0 &&
           strncmp(about.name, name, sizeof(about.name)) == 0;
}

/* 1 when a program of that name is attached to the cgroup itself, 0 when none is. */
static int is_attached(int cgroup_fd, const char *name)
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
        if (has_name(ids[i], name))
            return 1;
    return 0;
}

/* --- what is asked for --- */

static int put_on(int cgroup_fd, const struct filter *filter, struct error *err)
{
    _cleanup_close_ int program_fd = load(filter);
    if (program_fd < 0)
        return error_set_errno(err, program_fd, "cannot load the device filter");
    int r = attach(cgroup_fd, program_fd);
    return r < 0 ? error_set_errno(err, r, "cannot attach the device filter") : 1;
}

int device_filter_apply(int cgroup_fd, const struct device_rule *rules, size_t count, struct error *err)
{
    _cleanup_(clear_filter) struct filter filter;
    make_filter(rules, count, &filter);
    int r = is_attached(cgroup_fd, filter.name);
    if (r < 0)
        return error_set_errno(err, r, "cannot tell which device filter is there");
    return r == 1 ? 0 : put_on(cgroup_fd, &filter, err);
}

int device_filter_probe(int cgroup_fd, struct error *err)
{
    _cleanup_(clear_filter) struct filter filter;
    make_filter(NULL, 0, &filter);
    _cleanup_close_ int program_fd = load(&filter);
    int r = program_fd < 0 ? program_fd : attach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "the kernel takes no device filter from us");
    int found = is_attached(cgroup_fd, filter.name);
    r = detach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "cannot take a device filter away");
    return found == 1 ? 0
                      : error_set(err, -EPERM, "the kernel does not tell us which device filters are there");
}
