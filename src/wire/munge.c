/* SPDX-License-Identifier: MIT */
/*
 * libmunge is loaded on demand, so mgpu does not depend on it. The prototypes are mgpu's own; libmunge has
 * not changed them since 0.5. munged itself remembers decoded credentials and refuses duplicates.
 */
#include "wire/munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/memory.h"
#include "base/strings.h"

#define LIBRARY       "libmunge.so.2"
#define OPTION_TTL    4 // MUNGE_OPT_TTL
#define OPTION_SOCKET 8 // MUNGE_OPT_SOCKET
#define ERROR_SOCKET  6 // EMUNGE_SOCKET
#define ERROR_TIMEOUT 7 // EMUNGE_TIMEOUT
#define CREDENTIAL_S  60
#define REASON_MAX    200

struct munge {
    void *library;
    void *context;
    void *(*create)(void);
    void (*destroy)(void *context);
    int (*set)(void *context, int option, ...);
    const char *(*explain)(int error);
    int (*encode)(char **credential, void *context, const void *payload, int length);
    int (*decode)(const char *credential, void *context, void **payload, int *length, uid_t *uid, gid_t *gid);
};

static int find_functions(struct munge *munge, struct error *err)
{
    const struct {
        const char *name;
        void *place;
    } rows[] = {
        { "munge_ctx_create", &munge->create },
        { "munge_ctx_destroy", &munge->destroy },
        { "munge_ctx_set", &munge->set },
        { "munge_strerror", &munge->explain },
        { "munge_encode", &munge->encode },
        { "munge_decode", &munge->decode },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *function = dlsym(munge->library, rows[i].name);
        if (function == NULL)
            return error_set(err, -ENOENT, LIBRARY " has no %s", rows[i].name);
        memcpy(rows[i].place, &function, sizeof(function));
    }
    return 0;
}

static void munge_freep(struct munge **munge)
{
    munge_free(*munge);
}

int munge_open(const char *socket, struct munge **ret, struct error *err)
{
    _cleanup_(munge_freep) struct munge *munge = xcalloc(1, sizeof(*munge));
    munge->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (munge->library == NULL) {
        (void)error_set(err, -ENOENT, "MUNGE is enabled, but " LIBRARY " is not installed");
        return error_hint(err, "apt install munge, or dnf install munge; all machines need the same key");
    }
    int r = find_functions(munge, err);
    if (r < 0)
        return r;
    munge->context = munge->create();
    if (munge->context == NULL || munge->set(munge->context, OPTION_TTL, CREDENTIAL_S) != 0 ||
        (socket != NULL && munge->set(munge->context, OPTION_SOCKET, socket) != 0))
        return error_set(
            err, -EINVAL, "cannot set up MUNGE for %s", socket != NULL ? socket : "this machine");
    *ret = take_ptr(munge);
    return 0;
}

void munge_free(struct munge *munge)
{
    if (munge == NULL)
        return;
    if (munge->context != NULL)
        munge->destroy(munge->context);
    if (munge->library != NULL)
        (void)dlclose(munge->library);
    free(munge);
}

char *munge_payload(const char *instance, const char *method, const char *target)
{
    return xasprintf("mgpu-1 %s %s %s", instance, method, target);
}

static int explain(int error, const char *why, const char *what, struct error *err)
{
    if (error == ERROR_SOCKET || error == ERROR_TIMEOUT) {
        (void)error_set(err, -ECOMM, "munged does not respond");
        return error_hint(err, "systemctl status munge");
    }
    _cleanup_free_ char *reason = text_escape(why != NULL ? why : "unknown error", REASON_MAX);
    return error_set(err, -ENOKEY, "%s: %s", what, reason);
}

int munge_encode(struct munge *munge, const char *payload, char **ret_credential, struct error *err)
{
    char *credential = NULL;
    int error = munge->encode(&credential, munge->context, payload, (int)strlen(payload));
    if (error != 0) {
        free(credential);
        return explain(error, munge->explain(error), "MUNGE did not create a credential", err);
    }
    *ret_credential = credential;
    return 0;
}

int munge_read_answer(const struct munge_answer *answer, struct munge_claim *ret_claim, struct error *err)
{
    const char *payload = answer->payload;
    if (answer->error != 0)
        return explain(answer->error, answer->reason, "invalid MUNGE credential", err);
    if (answer->length <= 0 || payload == NULL || memchr(payload, '\0', (size_t)answer->length) != NULL)
        return error_set(err, -ENOKEY, "this MUNGE credential belongs to another request");
    if (answer->uid == UINT32_MAX)
        return error_set(err, -ENOKEY, "this MUNGE credential names no user");
    *ret_claim = (struct munge_claim){ answer->uid, answer->gid, xstrndup(payload, (size_t)answer->length) };
    return 0;
}

int munge_decode(
    struct munge *munge, const char *credential, struct munge_claim *ret_claim, struct error *err)
{
    void *payload = NULL;
    int length = 0;
    uid_t uid = UINT32_MAX;
    gid_t gid = UINT32_MAX;
    int error = munge->decode(credential, munge->context, &payload, &length, &uid, &gid);
    const struct munge_answer answer = { error, error != 0 ? munge->explain(error) : NULL, payload, length,
        uid, gid };
    int r = munge_read_answer(&answer, ret_claim, err);
    free(payload); // a refused credential has one, too
    return r;
}
