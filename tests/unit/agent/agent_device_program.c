/* SPDX-License-Identifier: MIT */
/* The instructions are run by a small machine of our own. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confine/device_program.h"
#include "base/memory.h"
#include "unit_test.h"

#define ANY LAUNCH_MINOR_MAX

struct rules {
    const struct device_rule *items;
    size_t count;
};
#define RULES(array_)                                                                                        \
    (const struct rules)                                                                                     \
    {                                                                                                        \
        array_, sizeof(array_) / sizeof((array_)[0])                                                         \
    }

static const struct device_rule usual[] = {
    { 195, 2, 2, 1 },
    { 195, 254, 255, 1 },
    { 195, 0, ANY, 0 },
    { 226, 0, ANY, 0 },
};

static uint32_t load_field(const struct bpf_cgroup_dev_ctx *device, short offset)
{
    uint32_t value;
    memcpy(&value, (const char *)device + offset, sizeof(value));
    return value;
}

/* What the program answers; fails on an instruction that no filter has, and on one outside of it. */
static uint64_t run(const struct device_program *program, const struct bpf_cgroup_dev_ctx *device)
{
    uint64_t r[11] = { 0 };
    for (size_t at = 0; at < program->length; at++) {
        const struct bpf_insn *one = &program->instructions[at];
        uint64_t immediate = (uint64_t)(int64_t)one->imm;
        switch (one->code) {
        case BPF_LDX | BPF_MEM | BPF_W: r[one->dst_reg] = load_field(device, one->off); break;
        case BPF_ALU64 | BPF_MOV | BPF_K: r[one->dst_reg] = immediate; break;
        case BPF_ALU64 | BPF_AND | BPF_K: r[one->dst_reg] &= immediate; break;
        case BPF_JMP | BPF_JEQ | BPF_K: at += r[one->dst_reg] == immediate ? (size_t)one->off : 0; break;
        case BPF_JMP | BPF_JNE | BPF_K: at += r[one->dst_reg] != immediate ? (size_t)one->off : 0; break;
        case BPF_JMP | BPF_JGE | BPF_K: at += r[one->dst_reg] >= immediate ? (size_t)one->off : 0; break;
        case BPF_JMP | BPF_EXIT: return r[BPF_REG_0];
        default: fail_msg("instruction %zu has code %#x", at, one->code);
        }
    }
    fail_msg("the program ran past its end");
    return 0;
}

static bool answer(const struct device_program *program, uint32_t kind, uint32_t access,
    uint32_t major_number, uint32_t minor_number)
{
    struct bpf_cgroup_dev_ctx device = {
        .access_type = access << 16 | kind, .major = major_number, .minor = minor_number
    };
    return run(program, &device) == 1;
}

static bool is_allowed(
    struct rules rules, uint32_t kind, uint32_t access, uint32_t major_number, uint32_t minor_number)
{
    _cleanup_(device_program_clear) struct device_program program;
    device_program_build(rules.items, rules.count, &program);
    bool is = answer(&program, kind, access, major_number, minor_number);
    return is;
}

TEST(the_first_rule_that_fits_decides)
{
    static const uint32_t accesses[] = { BPF_DEVCG_ACC_MKNOD, BPF_DEVCG_ACC_READ, BPF_DEVCG_ACC_WRITE,
        BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE };
    for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
        for (uint32_t n = 0; n < 300; n++)
            assert_int_equal(is_allowed(RULES(usual), BPF_DEVCG_DEV_CHAR, accesses[i], 195, n),
                n == 2 || n == 254 || n == 255);
        assert_false(is_allowed(RULES(usual), BPF_DEVCG_DEV_CHAR, accesses[i], 195, ANY));
        assert_false(is_allowed(RULES(usual), BPF_DEVCG_DEV_CHAR, accesses[i], 226, 128));
    }
}

TEST(what_no_rule_names_is_allowed)
{
    const struct rules none = { NULL, 0 };
    assert_true(is_allowed(RULES(usual), BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 1, 3));
    assert_true(is_allowed(RULES(usual), BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 194, 0));
    assert_true(is_allowed(RULES(usual), BPF_DEVCG_DEV_BLOCK, BPF_DEVCG_ACC_READ, 195, 0));
    assert_true(is_allowed(none, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 195, 0));
}

/* What the header promises of rules, without the program. */
static bool decide(struct rules rules, uint32_t major_number, uint32_t minor_number)
{
    for (size_t i = 0; i < rules.count; i++)
        if (rules.items[i].major == major_number && minor_number >= rules.items[i].minor_first &&
            minor_number <= rules.items[i].minor_last)
            return rules.items[i].is_allowed != 0;
    return true;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 16;
}

TEST(any_rules_become_a_program_that_decides_as_they_do)
{
    struct device_rule rules[12];
    uint32_t seed = 7;
    for (int round = 0; round < 500; round++) {
        struct rules all = { rules, next_random(&seed) % 12 };
        for (size_t i = 0; i < all.count; i++) {
            uint32_t first = next_random(&seed) % 12;
            rules[i] = (struct device_rule){ 195 + next_random(&seed) % 3, first,
                next_random(&seed) % 4 == 0 ? ANY : first + next_random(&seed) % 5, next_random(&seed) % 2 };
        }
        struct device_program program;
        device_program_build(rules, all.count, &program);
        for (uint32_t major_number = 194; major_number < 199; major_number++)
            for (uint32_t n = 0; n < 20; n++)
                if (answer(&program, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, major_number, n) !=
                    decide(all, major_number, n))
                    fail_msg("round %d: %u:%u is not decided as the rules do", round, major_number, n);
        device_program_clear(&program);
    }
}

TEST(neighbours_become_one)
{
    static const struct device_rule single[] = { { 195, 0, 7, 1 }, { 195, 0, ANY, 0 } };
    struct device_rule apart[9];
    struct device_program one, other;
    for (uint32_t n = 0; n < 8; n++)
        apart[7 - n] = (struct device_rule){ 195, n, n, 1 };
    apart[8] = (struct device_rule){ 195, 0, ANY, 0 };
    device_program_build(single, 2, &one);
    device_program_build(apart, 9, &other);
    assert_int_equal(other.length, one.length);
    assert_memory_equal(other.instructions, one.instructions, one.length * sizeof(struct bpf_insn));
    device_program_clear(&one);
    device_program_clear(&other);
}

/* Jumps have 16 bits. */
TEST(as_many_rules_as_there_may_be_fit)
{
    _cleanup_free_ struct device_rule *rules = xcalloc(LAUNCH_DEVICES_MAX, sizeof(*rules));
    _cleanup_(device_program_clear) struct device_program program;
    for (uint32_t i = 0; i < LAUNCH_DEVICES_MAX; i++)
        rules[i] = (struct device_rule){ 195, 2 * i, 2 * i, 0 };
    device_program_build(rules, LAUNCH_DEVICES_MAX, &program);
    for (uint32_t n = 0; n < 2 * LAUNCH_DEVICES_MAX; n++)
        assert_int_equal(answer(&program, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 195, n), n % 2);
    assert_true(program.length < INT16_MAX);
}
