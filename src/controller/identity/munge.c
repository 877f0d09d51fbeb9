/* SPDX-License-Identifier: MIT */
/*
 * munged accepts a credential once. Its payload must be exactly this controller's instance and the request's
 * method and target, so credentials for another service, cluster or request are useless here.
 */
#include "controller/identity/munge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/strings.h"
#include "controller/http/request.h"
#include "controller/identity/munge_worker.h"

struct visit {
    struct request *request;
    void (*next)(struct request *request);
};

bool munge_is_scheme(const char *authorization)
{
    return strncasecmp(authorization, MUNGE_SCHEME, sizeof(MUNGE_SCHEME) - 1) == 0;
}

static bool is_for(const struct request *request, const struct munge_claim *claim)
{
    _cleanup_free_ char *wanted = munge_payload(
        request->serve->controller->summary.instance, request->message.method, request->message.target);
    return text_equal(claim->payload, wanted);
}

static void on_claim(void *arg, const struct munge_claim *claim, const struct error *err)
{
    struct visit *visit = arg;
    struct request *request = visit->request;
    if (!request_is_over(request)) {
        struct error other = { 0 };
        if (claim == NULL) {
            request_reply_problem(request, err);
        } else if (!is_for(request, claim)) {
            (void)error_set(&other, -ENOKEY, "this MUNGE credential is for another request or mgpud");
            request_reply_problem(request, &other);
        } else {
            request->who = (struct identity){ .is_known = true, .uid = claim->uid, .gid = claim->gid };
            visit->next(request);
        }
    }
    request_unref(request);
    free(visit);
}

void munge_identify(struct request *request, const char *authorization, void (*next)(struct request *request))
{
    struct munge_worker *worker = request->serve->controller->munge_worker;
    struct error err = { 0 };
    request->who = (struct identity){ 0 };
    if (worker == NULL) {
        (void)error_set(&err, -ENOKEY, "this mgpud does not accept MUNGE credentials");
        (void)error_hint(&err, "use mgpud --munge on, or a token: mgpu token create");
        request_reply_problem(request, &err);
        return;
    }
    struct visit *visit = xcalloc(1, sizeof(*visit));
    *visit = (struct visit){ request, next };
    const char *credential = authorization + sizeof(MUNGE_SCHEME) - 1;
    request_ref(request);
    int r = munge_worker_ask(worker, credential + strspn(credential, " "), on_claim, visit, &err);
    if (r < 0)
        on_claim(visit, NULL, &err);
}
