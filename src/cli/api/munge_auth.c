/* SPDX-License-Identifier: MIT */
/*
 * A credential is valid for one request to one mgpud, so its instance must be known first: GET /version needs
 * no credential. The server has already been authenticated by the pin of MGPU_HOST.
 */
#include "cli/api/munge_auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/client.h"
#include "wire/munge.h"

#define ANSWER_WAIT_MS 30000

struct munge_auth {
    struct munge *munge;
    char *instance;
};

int munge_auth_is_wanted(bool *ret, struct error *err)
{
    const char *value = getenv("MGPU_AUTH");
    bool is_munge = value != NULL && strcmp(value, "munge") == 0;
    if (!is_munge && value != NULL && *value != '\0' && strcmp(value, "token") != 0) {
        (void)error_set(err, -EINVAL, "MGPU_AUTH: unknown method '%.40s'", value);
        return error_hint(err, "use munge or token");
    }
    *ret = is_munge;
    return 0;
}

static int ask_instance(struct http_client *http, char **ret, struct error *err)
{
    const struct http_request request = { .method = "GET", .path = API_PATH "/version" };
    int r = http_client_request(http, &request, ANSWER_WAIT_MS, err);
    if (r < 0)
        return r;
    const struct http_answer *answer = http_client_answer(http);
    if (answer->status != 200)
        return client_problem(answer, err);
    _cleanup_json_ json_t *version =
        json_loadb((const char *)answer->body.bytes, answer->body.length, JSON_REJECT_DUPLICATES, NULL);
    const char *instance = field_text(version, "instance");
    if (instance == NULL)
        return error_set(err, -EBADMSG, "mgpud did not report its instance");
    *ret = xstrdup(instance);
    return 0;
}

static int make_credential(void *arg, const char *method, const char *path, char **ret, struct error *err)
{
    const struct munge_auth *auth = arg;
    _cleanup_free_ char *payload = munge_payload(auth->instance, method, path), *credential = NULL;
    int r = munge_encode(auth->munge, payload, &credential, err);
    if (r == 0)
        *ret = xasprintf(MUNGE_SCHEME "%s", credential);
    return r;
}

int munge_auth_begin(struct munge_auth **auth, struct http_client *http, struct error *err)
{
    const char *socket = getenv("MGPU_MUNGE_SOCKET");
    if (*auth == NULL)
        *auth = xcalloc(1, sizeof(**auth));
    int r = 0;
    if ((*auth)->munge == NULL)
        r = munge_open(socket != NULL && *socket != '\0' ? socket : NULL, &(*auth)->munge, err);
    if (r == 0 && (*auth)->instance == NULL)
        r = ask_instance(http, &(*auth)->instance, err);
    if (r == 0)
        http_client_authorize_each(http, make_credential, *auth);
    return r;
}

void munge_auth_free(struct munge_auth *auth)
{
    if (auth == NULL)
        return;
    munge_free(auth->munge);
    free(auth->instance);
    free(auth);
}
