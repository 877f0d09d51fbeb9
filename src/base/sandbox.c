/* SPDX-License-Identifier: MIT */
/*
 * A deny list, not an allow list: a C library, SQLite, OpenSSL or a driver's library that uses a new system
 * call keeps working, and the list of dangerous system calls is known and seldom changes. clone3 cannot be
 * filtered, because its flags are in memory; it fails with ENOSYS, so the C library uses clone, whose flags
 * are in a register.
 *
 * The filter is a linear search: these processes make few system calls.
 */
#include "base/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE 0U
#endif

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

#define X32_BIT 0x40000000U // another table of numbers for the same processor
#define NAMESPACES                                                                                           \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |            \
        CLONE_NEWNET)
#define FILTER_MAX 160

static const uint32_t refused[] = {
    /* the machine */
    SYS_reboot,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_syslog,
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
    /* file systems and namespaces */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fspick,
    SYS_open_tree,
    SYS_move_mount,
    SYS_mount_setattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_mknodat,
#ifdef SYS_mknod
    SYS_mknod,
#endif
/* other processes; LeakSanitizer traces its process */
#if !IS_SANITIZED
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_kcmp,
    /* rarely used parts of the kernel */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_lookup_dcookie,
    SYS_vhangup,
};

static const uint32_t programs[] = { SYS_execve, SYS_execveat };

struct filter {
    struct sock_filter rows[FILTER_MAX];
    uint16_t count;
};

static void add(struct filter *filter, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
    filter->rows[filter->count++] = (struct sock_filter){ code, if_true, if_false, value };
}

static void load(struct filter *filter, size_t offset)
{
    add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* If the loaded word has this relation to the value, the system call has this result. */
static void answer_if(struct filter *filter, uint16_t relation, uint32_t value, uint32_t answer)
{
    add(filter, BPF_JMP | relation | BPF_K, value, 0, 1);
    add(filter, BPF_RET | BPF_K, answer, 0, 0);
}

static void refuse_all(struct filter *filter, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        answer_if(filter, BPF_JEQ, numbers[i], SECCOMP_RET_ERRNO | EPERM);
}

static void build(struct filter *filter, bool may_execute)
{
    load(filter, offsetof(struct seccomp_data, arch));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    add(filter, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    load(filter, offsetof(struct seccomp_data, nr));
    answer_if(filter, BPF_JGE, X32_BIT, SECCOMP_RET_ERRNO | EPERM);
    refuse_all(filter, refused, sizeof(refused) / sizeof(refused[0]));
    if (!may_execute)
        refuse_all(filter, programs, sizeof(programs) / sizeof(programs[0]));
    answer_if(filter, BPF_JEQ, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    /* The last: it replaces the number by the flags. */
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
    load(filter, offsetof(struct seccomp_data, args[0]));
    answer_if(filter, BPF_JSET, NAMESPACES, SECCOMP_RET_ERRNO | EPERM);
    add(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static_assert((sizeof(refused) + sizeof(programs)) / sizeof(uint32_t) * 2 + 20 < FILTER_MAX,
    "each number takes two rows");

int sandbox_enter(bool may_execute, struct error *err)
{
    struct filter filter = { .count = 0 };
    if (MACHINE == 0)
        return error_set(err, -ENOTSUP, "the system calls of this processor are not known");
    build(&filter, may_execute);
    const struct sock_fprog program = { .len = filter.count, .filter = filter.rows };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_set_errno(err, -errno, "cannot set no_new_privs");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
        return 0;
    if (errno == EINVAL || errno == ENOSYS)
        return error_set(err, -ENOTSUP, "this kernel has no filters of system calls");
    return error_set_errno(err, -errno, "cannot filter system calls");
}
