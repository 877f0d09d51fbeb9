/* SPDX-License-Identifier: MIT */
#include "base/capabilities.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD_BITS 32
#define WORDS     _LINUX_CAPABILITY_U32S_3

void capabilities_bound(uint64_t kept)
{
    for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
        if (number >= 64 || (kept & CAPABILITY(number)) == 0)
            (void)prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
}

void capabilities_keep(uint64_t kept)
{
    struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[WORDS] = { 0 };
    capabilities_bound(kept);
    if (syscall(SYS_capget, &self, sets) < 0)
        return;
    for (unsigned i = 0; i < WORDS; i++) {
        uint32_t word = (uint32_t)(kept >> (i * WORD_BITS));
        sets[i].effective &= word;
        sets[i].permitted &= word;
        sets[i].inheritable &= word;
    }
    (void)syscall(SYS_capset, &self, sets);
}
