/* SPDX-License-Identifier: MIT */
/*
 * The kernel calls the program for every open(2) and mknod(2) of a device node by a process of the cgroup,
 * with the kind of node, its major and its minor number; 1 allows and 0 denies. What a rule says holds for
 * reading, writing and making the node alike.
 *
 *      r2 = major, r3 = minor, r4 = kind of node
 *      if it is no character device: allow
 *      for each rule: if major and minor fit: r0 = what the rule says, exit
 *      allow
 *
 * The program is loaded with bpf(2) itself. A program that is there already is told by its tag, the kernel's
 * hash of its instructions: so one cgroup gets the same filter only once.
 */
#include "agent/device_filter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define ATTACHED_MAX 64U // programs of one cgroup that are looked at
#define RULE_SIZE    5U

#define LOAD(register_, field_)                                                                              \
    {                                                                                                        \
        .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (register_), .src_reg = BPF_REG_1,                     \
        .off = (short)offsetof(struct bpf_cgroup_dev_ctx, field_)                                            \
    }
#define SET(register_, value_)                                                                               \
    {                                                                                                        \
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (register_), .imm = (int32_t)(value_)                \
    }
#define MASK(register_, value_)                                                                              \
    {                                                                                                        \
        .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = (register_), .imm = (int32_t)(value_)                \
    }
#define SKIP_IF(test_, register_, value_, by_)                                                               \
    {                                                                                                        \
        .code = BPF_JMP | (test_) | BPF_K, .dst_reg = (register_), .off = (short)(by_),                      \
        .imm = (int32_t)(value_)                                                                             \
    }
#define EXIT                                                                                                 \
    {                                                                                                        \
        .code = BPF_JMP | BPF_EXIT                                                                           \
    }

#define KIND_MASK 0xffff // the access that is wanted is in the upper half

static size_t add(struct bpf_insn *program, const struct bpf_insn *instructions, size_t count)
{
    memcpy(program, instructions, count * sizeof(*program));
    return count;
}

size_t device_filter_build(const struct device_rule *rules, size_t count, struct bpf_insn *program)
{
    /* Jumps reach the end, which lies behind all rules: a jump has 16 bits, and the limit keeps within. */
    const struct bpf_insn begin[] = {
        LOAD(BPF_REG_2, major),
        LOAD(BPF_REG_3, minor),
        LOAD(BPF_REG_4, access_type),
        MASK(BPF_REG_4, KIND_MASK),
        SKIP_IF(BPF_JNE, BPF_REG_4, BPF_DEVCG_DEV_CHAR, RULE_SIZE * count),
    };
    const struct bpf_insn end[] = { SET(BPF_REG_0, 1), EXIT };
    size_t length = add(program, begin, sizeof(begin) / sizeof(begin[0]));
    for (size_t i = 0; i < count; i++) {
        const struct bpf_insn rule[RULE_SIZE] = {
            SKIP_IF(BPF_JNE, BPF_REG_2, rules[i].major, 4),
            SKIP_IF(BPF_JLT, BPF_REG_3, rules[i].minor_first, 3),
            SKIP_IF(BPF_JGT, BPF_REG_3, rules[i].minor_last, 2),
            SET(BPF_REG_0, rules[i].is_allowed != 0),
            EXIT,
        };
        length += add(program + length, rule, RULE_SIZE);
    }
    return length + add(program + length, end, sizeof(end) / sizeof(end[0]));
}

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    long r = syscall(SYS_bpf, command, attributes, sizeof(*attributes));
    return r < 0 ? -errno : (int)r;
}

static int load(const struct device_rule *rules, size_t count)
{
    static const char license[] = "MIT";
    _cleanup_free_ struct bpf_insn *program = xcalloc(DEVICE_FILTER_SIZE(count) + 1, sizeof(*program));
    union bpf_attr attributes = {
        .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
        .insns = (uint64_t)(uintptr_t)program,
        .insn_cnt = (uint32_t)device_filter_build(rules, count, program),
        .license = (uint64_t)(uintptr_t)license,
        .prog_name = "mgpu_devices",
    };
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

static int read_tag(int program_fd, uint8_t tag[BPF_TAG_SIZE])
{
    struct bpf_prog_info about = { 0 };
    union bpf_attr attributes = { .info = {
                                      .bpf_fd = (uint32_t)program_fd,
                                      .info_len = sizeof(about),
                                      .info = (uint64_t)(uintptr_t)&about,
                                  } };
    int r = call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);
    if (r < 0)
        return r;
    memcpy(tag, about.tag, BPF_TAG_SIZE);
    return 0;
}

static bool has_tag(uint32_t program_id, const uint8_t tag[BPF_TAG_SIZE])
{
    uint8_t its_tag[BPF_TAG_SIZE];
    union bpf_attr attributes = { .prog_id = program_id };
    _cleanup_close_ int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
    return fd >= 0 && read_tag(fd, its_tag) == 0 && memcmp(its_tag, tag, BPF_TAG_SIZE) == 0;
}

/* 1 when a program with the same instructions is attached to the cgroup, 0 when none is. */
static int is_attached(int cgroup_fd, int program_fd)
{
    uint32_t ids[ATTACHED_MAX] = { 0 };
    uint8_t tag[BPF_TAG_SIZE];
    union bpf_attr attributes = { .query = {
                                      .target_fd = (uint32_t)cgroup_fd,
                                      .attach_type = BPF_CGROUP_DEVICE,
                                      .prog_ids = (uint64_t)(uintptr_t)ids,
                                      .prog_cnt = ATTACHED_MAX,
                                  } };
    int r = call_bpf(BPF_PROG_QUERY, &attributes);
    if (r < 0 || attributes.query.prog_cnt == 0)
        return r;
    r = read_tag(program_fd, tag);
    for (uint32_t i = 0; r == 0 && i < attributes.query.prog_cnt && i < ATTACHED_MAX; i++)
        if (has_tag(ids[i], tag))
            return 1;
    return r;
}

int device_filter_apply(int cgroup_fd, const struct device_rule *rules, size_t count, struct error *err)
{
    _cleanup_close_ int program_fd = load(rules, count);
    if (program_fd < 0)
        return error_set_errno(err, program_fd, "cannot load the device filter");
    int r = is_attached(cgroup_fd, program_fd);
    if (r == 1)
        return 0;
    if (r == 0)
        r = attach(cgroup_fd, program_fd);
    return r < 0 ? error_set_errno(err, r, "cannot attach the device filter") : 1;
}

int device_filter_probe(int cgroup_fd, struct error *err)
{
    _cleanup_close_ int program_fd = load(NULL, 0);
    int r = program_fd < 0 ? program_fd : attach(cgroup_fd, program_fd);
    if (r < 0)
        return error_set_errno(err, r, "the kernel takes no device filter from us");
    r = detach(cgroup_fd, program_fd);
    return r < 0 ? error_set_errno(err, r, "cannot take a device filter away") : 0;
}
