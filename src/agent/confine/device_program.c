/* SPDX-License-Identifier: MIT */
/*
 * The kernel calls the program for every open(2) and mknod(2) of a device node by a process of the cgroup,
 * with the kind of node, its major and its minor number; 1 allows and 0 denies. A rule applies equally to
 * reading, writing and creating the node.
 *
 *      r2 = major, r3 = minor, r4 = kind of node, r0 = 1
 *      if it is not a character device: exit
 *      for each major in the rules: if it matches: search for the minor, exit
 *      exit
 *
 * The minors of a major are divided into ranges with the same result, and the range of a minor is found by
 * binary search. No two paths through the program join before its end, so the kernel's verifier, which walks
 * all of them, has little to do.
 */
#include "agent/confine/device_program.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

#define KIND_MASK 0xffff // the upper half contains the requested access

/* Minors from `first` up to the next stretch. */
struct stretch {
    uint32_t first;
    bool is_allowed;
};

/* --- instructions --- */

static size_t add(struct device_program *program, struct bpf_insn instruction)
{
    if (program->length == program->capacity) {
        program->capacity = program->capacity == 0 ? 64 : program->capacity * 2;
        program->instructions =
            xreallocarray(program->instructions, program->capacity, sizeof(*program->instructions));
    }
    program->instructions[program->length] = instruction;
    return program->length++;
}

static void add_load(struct device_program *program, uint8_t to, size_t offset)
{
    add(program, (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W,
                     .dst_reg = to & 0xf,
                     .src_reg = BPF_REG_1,
                     .off = (int16_t)offset });
}

static void add_number(struct device_program *program, uint8_t operation, uint8_t to, int32_t value)
{
    add(program,
        (struct bpf_insn){ .code = BPF_ALU64 | operation | BPF_K, .dst_reg = to & 0xf, .imm = value });
}

/* Adds a jump whose target is set by land(). */
static size_t add_jump(struct device_program *program, uint8_t test, uint8_t of, uint32_t value)
{
    return add(
        program, (struct bpf_insn){
                     .code = (uint8_t)(BPF_JMP | test | BPF_K), .dst_reg = of & 0xf, .imm = (int32_t)value });
}

/* Sets the target of the jump to the next instruction. */
static void land(struct device_program *program, size_t jump)
{
    program->instructions[jump].off = (int16_t)(program->length - jump - 1);
}

static void add_exit(struct device_program *program)
{
    add(program, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

/* --- stretches --- */

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static bool decide(
    const struct device_rule *rules, size_t count, uint32_t major_number, uint32_t minor_number)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].major == major_number && minor_number >= rules[i].minor_first &&
            minor_number <= rules[i].minor_last)
            return rules[i].is_allowed != 0;
    return true;
}

/* All stretches of a major in order; `ret` has space for 2 * count + 1. */
static size_t cut(const struct device_rule *rules, size_t count, uint32_t major_number, struct stretch *ret)
{
    _cleanup_free_ uint32_t *edges = xcalloc(2 * count + 1, sizeof(*edges));
    size_t n_edges = 1, length = 0; // the first edge is 0
    for (size_t i = 0; i < count; i++) {
        if (rules[i].major != major_number)
            continue;
        edges[n_edges++] = rules[i].minor_first;
        if (rules[i].minor_last < LAUNCH_MINOR_MAX)
            edges[n_edges++] = rules[i].minor_last + 1;
    }
    qsort(edges, n_edges, sizeof(*edges), compare_numbers);
    for (size_t i = 0; i < n_edges; i++) {
        bool is_allowed = decide(rules, count, major_number, edges[i]);
        if (length == 0 || ret[length - 1].is_allowed != is_allowed)
            ret[length++] = (struct stretch){ edges[i], is_allowed };
    }
    return length;
}

static void add_search(struct device_program *program, const struct stretch *stretches, size_t count)
{
    if (count == 1) {
        if (!stretches->is_allowed)
            add_number(program, BPF_MOV, BPF_REG_0, 0);
        add_exit(program);
        return;
    }
    size_t half = count / 2;
    size_t jump = add_jump(program, BPF_JGE, BPF_REG_3, stretches[half].first);
    add_search(program, stretches, half);
    land(program, jump);
    add_search(program, stretches + half, count - half);
}

/* --- the whole --- */

static size_t list_majors(const struct device_rule *rules, size_t count, uint32_t *ret)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        ret[i] = rules[i].major;
    qsort(ret, count, sizeof(*ret), compare_numbers);
    for (size_t i = 0; i < count; i++)
        if (length == 0 || ret[length - 1] != ret[i])
            ret[length++] = ret[i];
    return length;
}

void device_program_build(const struct device_rule *rules, size_t count, struct device_program *ret)
{
    struct device_program program = { 0 };
    _cleanup_free_ uint32_t *majors = xcalloc(count + 1, sizeof(*majors));
    _cleanup_free_ struct stretch *stretches = xcalloc(2 * count + 1, sizeof(*stretches));
    size_t n_majors = list_majors(rules, count, majors);
    add_load(&program, BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, major));
    add_load(&program, BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, minor));
    add_load(&program, BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    add_number(&program, BPF_AND, BPF_REG_4, KIND_MASK);
    add_number(&program, BPF_MOV, BPF_REG_0, 1);
    size_t is_char = add_jump(&program, BPF_JEQ, BPF_REG_4, BPF_DEVCG_DEV_CHAR);
    add_exit(&program);
    land(&program, is_char);
    for (size_t i = 0; i < n_majors; i++) {
        size_t n_stretches = cut(rules, count, majors[i], stretches);
        size_t is_other = add_jump(&program, BPF_JNE, BPF_REG_2, majors[i]);
        add_search(&program, stretches, n_stretches);
        land(&program, is_other);
    }
    add_exit(&program);
    *ret = program;
}

void device_program_clear(struct device_program *program)
{
    free(program->instructions);
    *program = (struct device_program){ 0 };
}
