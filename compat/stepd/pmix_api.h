/* SPDX-License-Identifier: MIT */
/*
 * The part of libpmix that a server needs, loaded when a step requests it. The declarations are those of the
 * PMIx standard, 4.x, which libpmix.so.2 has not changed since 3.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define PMIX_NSPACE_SIZE 256
#define PMIX_KEY_SIZE    512
#define PMIX_ALL_RANKS   (UINT32_MAX - 1)

#define PMIX_OK           0
#define PMIX_NOT_FOUND    (-46)
#define PMIX_DONE_AT_ONCE (-157) // there will be no callback
#define PMIX_TYPE_STRING  3U
#define PMIX_TYPE_UINT16  13U
#define PMIX_TYPE_UINT32  14U
#define PMIX_TYPE_INFO    24U
#define PMIX_TYPE_ARRAY   39U
#define PMIX_TYPE_RANK    40U

struct pmix_proc {
    char nspace[PMIX_NSPACE_SIZE];
    uint32_t rank;
};

struct pmix_array {
    uint16_t type;
    size_t count;
    void *items;
};

struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint16_t uint16;
        uint32_t uint32;
        struct pmix_array *array;
        uint64_t size[3]; // of the largest member
    } as;
};

struct pmix_info {
    char key[PMIX_KEY_SIZE];
    uint32_t flags;
    struct pmix_value value;
};

typedef void pmix_release_fn(void *arg);
typedef void pmix_modex_fn(
    int status, const char *data, size_t length, void *arg, pmix_release_fn *release, void *release_arg);
typedef void pmix_op_fn(int status, void *arg);
typedef void pmix_response_fn(int status, char *data, size_t length, void *arg);

struct pmix_module {
    int (*client_connected)(const struct pmix_proc *proc, void *object, pmix_op_fn *done, void *arg);
    int (*client_finalized)(const struct pmix_proc *proc, void *object, pmix_op_fn *done, void *arg);
    int (*abort)(const struct pmix_proc *proc, void *object, int status, const char *message,
        struct pmix_proc *procs, size_t n_procs, pmix_op_fn *done, void *arg);
    int (*fence)(const struct pmix_proc *procs, size_t n_procs, const struct pmix_info *info, size_t n_info,
        char *data, size_t length, pmix_modex_fn *done, void *arg);
    int (*direct_modex)(const struct pmix_proc *proc, const struct pmix_info *info, size_t n_info,
        pmix_modex_fn *done, void *arg);
    void *others[22]; // publish to fabric: NULL, not supported
    void *client_connected2;
    void *later[16]; // of versions after 4.0
};

struct pmix_api {
    int (*server_init)(struct pmix_module *module, struct pmix_info *info, size_t n_info);
    int (*server_finalize)(void);
    int (*register_nspace)(
        const char *nspace, int n_local, struct pmix_info *info, size_t n_info, pmix_op_fn *done, void *arg);
    int (*register_client)(
        const struct pmix_proc *proc, uid_t uid, gid_t gid, void *object, pmix_op_fn *done, void *arg);
    int (*setup_fork)(const struct pmix_proc *proc, char ***env);
    int (*dmodex_request)(const struct pmix_proc *proc, pmix_response_fn *done, void *arg);
    const char *(*error_string)(int status);
};

/* Loads it once. -ENOENT: it is not installed. */
int pmix_api_load(const struct pmix_api **ret, struct error *err);
