/* SPDX-License-Identifier: MIT */
/*
 * A request:
 *
 *      WAITING ──a helper is free, and none is busy with this uid──> ASKED ──the helper answers──> ANSWERED
 *         └──────────────────── its time is up: -ETIMEDOUT ────────────┴──────────────────────────────^
 *
 * A helper has at most one request. It is killed when that request's time is up, or when the request is
 * dropped. A helper that is stuck in the kernel occupies its place until it has ended. A user is looked up by
 * one helper at a time, so a user whose entry hangs does not block all helpers. One idle helper is kept: a
 * process that has loaded its name service modules answers in a fraction of a millisecond. When many jobs of
 * a user start at once, an answer also settles the other questions about this user.
 */
#include "agent/host/user_resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "agent/host/user_cache.h"
#include "agent/host/user_logs.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/record.h"
#include "base/strings.h"
#include "job/launch.h"
#include "job/spec.h"

#define HELPERS_MAX 8U
#define SHARED_MAX  64U        // questions settled by one answer; limited so that the loop gets its turns
#define TEXT_MAX    (1U << 20) // longer than any entry of the user database
#define RECORD_MAX  (4U << 20) // an entry, and all LAUNCH_GROUPS_MAX groups of a user

/* A helper's request and reply. */
struct query {
    uint32_t uid;
    char *name; // NULL: not compared
    char *logs; // directory in which the user gets a log directory, or NULL
};
static const struct record_field query_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct query, uid, 0),
    RECORD_FIELD(2, RECORD_STRING, struct query, name, SPEC_PATH_MAX),
    RECORD_FIELD(3, RECORD_STRING, struct query, logs, SPEC_PATH_MAX),
};
const struct record_type user_query_record = RECORD_TYPE(1, "user query", struct query, query_fields);

struct answer {
    uint32_t error; // positive errno
    char *text, *hint;
    uint32_t uid, gid;
    char *name, *home, *shell;
    struct record_list groups; // struct group_id
};
static const struct record_field answer_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct answer, error, 0),
    RECORD_FIELD(2, RECORD_STRING, struct answer, text, sizeof((struct error){ 0 }.message)),
    RECORD_FIELD(3, RECORD_STRING, struct answer, hint, sizeof((struct error){ 0 }.hint)),
    RECORD_FIELD(4, RECORD_U32, struct answer, uid, 0),
    RECORD_FIELD(5, RECORD_U32, struct answer, gid, 0),
    RECORD_FIELD(6, RECORD_STRING, struct answer, name, TEXT_MAX),
    RECORD_FIELD(7, RECORD_STRING, struct answer, home, TEXT_MAX),
    RECORD_FIELD(8, RECORD_STRING, struct answer, shell, TEXT_MAX),
    RECORD_SUBLIST(9, struct answer, groups, LAUNCH_GROUPS_MAX, &group_id_record),
};
const struct record_type user_answer_record = RECORD_TYPE(2, "user answer", struct answer, answer_fields);

enum question_state { QUESTION_WAITING, QUESTION_ASKED, QUESTION_ANSWERED };

struct question {
    struct user_resolver *resolver;
    struct spool_id id;
    struct query query;
    enum question_state state;
    struct user_stamp stamp; // of the time of the request
    struct answer answer;
    struct event *timer; // until its timeout; ANSWERED: until the step is notified
    struct question *next;
};

struct helper {
    struct user_resolver *resolver;
    struct child *process; // NULL: it has ended
    int fd;                // -1: killed, or abandoned
    struct event *readable;
    struct buffer input;
    struct question *question; // NULL: it is idle
    struct helper *next;
};

struct user_resolver {
    struct event_base *base;
    const struct job_users *users;
    int64_t answer_ms;
    user_resolved_fn *on_resolved;
    void *arg;
    struct user_cache *cache;
    struct question *questions; // the oldest first
    struct helper *helpers;
    size_t n_helpers;
};

/* --- in a helper --- */

/* Reads one complete record; -EPIPE if the agent has closed. */
static int read_query(struct query *ret)
{
    _cleanup_buffer_ struct buffer input = { 0 };
    uint8_t byte[512];
    for (;;) {
        uint16_t id;
        size_t length;
        int r = record_peek(input.bytes, input.length, RECORD_MAX, &id, &length);
        if (r < 0)
            return r;
        if (length != 0 && length == input.length)
            return record_decode(&user_query_record, input.bytes, length, ret, NULL);
        ssize_t n = read(CHILD_FD, byte, sizeof(byte));
        if (n <= 0)
            return -EPIPE;
        buffer_append(&input, byte, (size_t)n);
    }
}

static void make_answer(const struct user *user, struct answer *ret)
{
    struct group_id *groups = xcalloc(user->n_groups + 1, sizeof(*groups));
    for (size_t i = 0; i < user->n_groups; i++)
        groups[i].gid = user->groups[i];
    *ret = (struct answer){ .uid = user->uid,
        .gid = user->gid,
        .name = xstrdup(user->name),
        .home = xstrdup(user->home),
        .shell = xstrdup(user->shell),
        .groups = { groups, user->n_groups } };
}

static void make_refusal(int r, const struct error *err, struct answer *ret)
{
    *ret =
        (struct answer){ .error = (uint32_t)-r, .text = xstrdup(err->message), .hint = xstrdup(err->hint) };
}

static _Noreturn void serve(const struct job_users *users)
{
    struct query query;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    helper_enter(HELPER_USERS);
    while (read_query(&query) == 0) {
        _cleanup_buffer_ struct buffer output = { 0 };
        _cleanup_user_ struct user user = { 0 };
        struct error err = { 0 };
        struct answer answer;
        int r = job_user_find(users, query.uid, query.name, &user, &err);
        if (r == 0 && query.logs != NULL)
            r = user_logs_make(query.logs, user.uid, user.gid, &err);
        if (r == 0)
            make_answer(&user, &answer);
        else
            make_refusal(r, &err, &answer);
        record_encode(&user_answer_record, &answer, &output);
        record_clear(&user_answer_record, &answer);
        record_clear(&user_query_record, &query);
        if (write_all(CHILD_FD, output.bytes, output.length) < 0)
            break;
    }
    _exit(0);
}

/* --- questions --- */

static struct question **find(struct user_resolver *resolver, const struct spool_id *id)
{
    struct question **where = &resolver->questions;
    while (*where != NULL && !spool_id_equal(&(*where)->id, id))
        where = &(*where)->next;
    return where;
}

static void arm(struct question *question, int64_t ms)
{
    const struct timeval time = { ms / 1000, ms % 1000 * 1000 };
    (void)evtimer_add(question->timer, &time);
}

/* The step is notified from the loop, never from within one of its own calls. Takes ownership of the
 * answer. */
static void set_answer(struct question *question, const struct answer *answer)
{
    question->answer = *answer;
    question->state = QUESTION_ANSWERED;
    arm(question, 0);
}

static void refuse(struct question *question, int r, const struct error *err)
{
    struct answer answer;
    make_refusal(r, err, &answer);
    set_answer(question, &answer);
}

/* --- helpers, seen from the agent --- */

static void on_helper_end(void *arg, int status);
static void assign(struct user_resolver *resolver);

/* An idle helper exits by itself; a busy one has to be killed. Its place becomes free when it has ended. */
static void dismiss(struct helper *helper)
{
    if (helper->fd < 0)
        return;
    if (helper->question != NULL && helper->process != NULL)
        (void)process_signal(child_pidfd(helper->process), SIGKILL);
    helper->question = NULL;
    event_free(helper->readable);
    (void)close(take_fd(&helper->fd));
}

static void helper_free(struct helper *helper)
{
    struct user_resolver *resolver = helper->resolver;
    struct helper **where = &resolver->helpers;
    while (*where != helper)
        where = &(*where)->next;
    *where = helper->next;
    resolver->n_helpers--;
    dismiss(helper);
    child_free(helper->process);
    buffer_clear(&helper->input);
    free(helper);
}

static void fail(struct helper *helper, const char *why)
{
    struct error err = { 0 };
    struct question *question = helper->question;
    dismiss(helper);
    if (question == NULL)
        return;
    refuse(question, error_set(&err, -EIO, "cannot look up uid %u: %s", question->query.uid, why), &err);
}

static bool is_same(const struct question *a, const struct question *b)
{
    return a->query.uid == b->query.uid && text_equal(a->query.name, b->query.name) &&
           text_equal(a->query.logs, b->query.logs) && user_stamp_is_same(&a->stamp, &b->stamp);
}

/* Failures are not shared: each job gets its own. The time limit of requests that have to wait longer starts
 * again, because they are not waiting for the database. */
static void share(const struct question *asked, const struct answer *answer)
{
    const struct user_resolver *resolver = asked->resolver;
    size_t count = 0;
    for (struct question *other = resolver->questions; other != NULL; other = other->next) {
        struct answer copy;
        if (other->state != QUESTION_WAITING || !is_same(other, asked))
            continue;
        if (count++ < SHARED_MAX) {
            record_copy(&user_answer_record, &copy, answer);
            other->stamp = asked->stamp;
            set_answer(other, &copy);
        } else {
            arm(other, resolver->answer_ms);
        }
    }
}

static void take_answer(struct helper *helper)
{
    struct answer answer;
    uint16_t id;
    size_t length;
    struct buffer *input = &helper->input;
    if (record_peek(input->bytes, input->length, RECORD_MAX, &id, &length) < 0 || helper->question == NULL) {
        fail(helper, "the helper process sent invalid data");
        return;
    }
    if (length == 0 || length > input->length)
        return;
    if (length < input->length ||
        record_decode(&user_answer_record, input->bytes, length, &answer, NULL) < 0) {
        fail(helper, "the helper process sent invalid data");
        return;
    }
    buffer_clear(input);
    if (answer.error == 0)
        share(helper->question, &answer);
    set_answer(helper->question, &answer);
    helper->question = NULL;
}

static bool has_other_idle(const struct helper *helper)
{
    for (const struct helper *other = helper->resolver->helpers; other != NULL; other = other->next)
        if (other != helper && other->fd >= 0 && other->question == NULL)
            return true;
    return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct helper *helper = arg;
    uint8_t chunk[16384];
    ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(helper, "the helper process has ended");
    } else {
        buffer_append(&helper->input, chunk, (size_t)n);
        take_answer(helper);
    }
    assign(helper->resolver);
    if (helper->fd >= 0 && helper->question == NULL && has_other_idle(helper))
        dismiss(helper);
}

static void on_helper_end(void *arg, int status)
{
    struct helper *helper = arg;
    struct user_resolver *resolver = helper->resolver;
    helper->process = NULL;
    fail(helper, "the helper process has ended");
    helper_free(helper);
    assign(resolver);
}

static struct helper *helper_start(struct user_resolver *resolver)
{
    int pair[2], pidfd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return NULL;
    _cleanup_close_ int ours = pair[0];
    _cleanup_close_ int theirs = pair[1];
    pid_t pid = child_fork(theirs, &pidfd);
    if (pid == 0)
        serve(resolver->users);
    if (pid < 0)
        return NULL;
    struct helper *helper = xcalloc(1, sizeof(*helper));
    *helper = (struct helper){ .resolver = resolver, .fd = take_fd(&ours), .next = resolver->helpers };
    resolver->helpers = helper;
    resolver->n_helpers++;
    (void)fcntl(helper->fd, F_SETFL, O_NONBLOCK);
    helper->process = child_watch(resolver->base, pidfd, on_helper_end, helper);
    helper->readable = event_new(resolver->base, helper->fd, EV_READ | EV_PERSIST, on_readable, helper);
    if (helper->readable == NULL || event_add(helper->readable, NULL) < 0)
        abort(); // memory
    return helper;
}

static bool is_being_looked_up(const struct user_resolver *resolver, uint32_t uid)
{
    for (const struct helper *helper = resolver->helpers; helper != NULL; helper = helper->next)
        if (helper->question != NULL && helper->question->query.uid == uid)
            return true;
    return false;
}

static struct helper *pick_helper(struct user_resolver *resolver)
{
    for (struct helper *helper = resolver->helpers; helper != NULL; helper = helper->next)
        if (helper->fd >= 0 && helper->question == NULL)
            return helper;
    return resolver->n_helpers < HELPERS_MAX ? helper_start(resolver) : NULL;
}

/* A query is much smaller than the socket's buffer, which is empty. */
static void ask(struct helper *helper, struct question *question)
{
    _cleanup_buffer_ struct buffer output = { 0 };
    record_encode(&user_query_record, &question->query, &output);
    helper->question = question;
    question->state = QUESTION_ASKED;
    ssize_t n = send(helper->fd, output.bytes, output.length, MSG_NOSIGNAL);
    if (n != (ssize_t)output.length)
        fail(helper, "the helper process has ended");
}

static void assign(struct user_resolver *resolver)
{
    for (struct question *question = resolver->questions; question != NULL; question = question->next) {
        if (question->state != QUESTION_WAITING || is_being_looked_up(resolver, question->query.uid))
            continue;
        struct helper *helper = pick_helper(resolver);
        if (helper != NULL)
            ask(helper, question);
        else if (resolver->n_helpers > 0)
            return;
        else { // and none will become free
            struct error err = { 0 };
            int r = error_set(
                &err, -EAGAIN, "cannot look up uid %u: cannot start a helper process", question->query.uid);
            refuse(question, r, &err);
        }
    }
}

/* --- the interface --- */

static void stop_asking(const struct question *question)
{
    for (struct helper *helper = question->resolver->helpers; helper != NULL; helper = helper->next)
        if (helper->question == question)
            dismiss(helper);
}

static void question_free(struct question **where)
{
    struct question *question = *where;
    *where = question->next;
    stop_asking(question);
    event_free(question->timer);
    record_clear(&user_query_record, &question->query);
    record_clear(&user_answer_record, &question->answer);
    free(question);
}

static void explain_silence(const struct question *question, struct error *err)
{
    const struct user_resolver *resolver = question->resolver;
    const char *logs = question->query.logs;
    (void)error_set(err, -ETIMEDOUT,
        "the user database%s%s of node %s did not respond within %g s for uid %u",
        logs != NULL ? " or the log directory " : "", logs != NULL ? logs : "", resolver->users->node,
        (double)resolver->answer_ms / 1000, question->query.uid);
    (void)error_hint(err,
        logs != NULL ? "try getent passwd %u, and ls of that directory, there" : "try getent passwd %u there",
        question->query.uid);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct question *question = arg;
    struct user_resolver *resolver = question->resolver;
    struct spool_id id = question->id;
    if (question->state != QUESTION_ANSWERED) {
        struct error err = { 0 };
        explain_silence(question, &err);
        stop_asking(question);
        refuse(question, -ETIMEDOUT, &err);
        assign(resolver);
    }
    resolver->on_resolved(resolver->arg, &id); // the question may have been removed
}

static void question_add(
    struct user_resolver *resolver, const struct spool_id *id, uid_t uid, const char *name, const char *logs)
{
    struct question **last = &resolver->questions;
    while (*last != NULL)
        last = &(*last)->next;
    struct question *question = xcalloc(1, sizeof(*question));
    *question = (struct question){ .resolver = resolver,
        .id = *id,
        .query = { uid, name != NULL ? xstrdup(name) : NULL, logs != NULL ? xstrdup(logs) : NULL },
        .stamp = user_cache_stamp(resolver->cache, clock_boot_ms()),
        .timer = evtimer_new(resolver->base, on_timer, question) };
    if (question->timer == NULL)
        abort(); // memory
    *last = question;
    arm(question, resolver->answer_ms);
    assign(resolver);
}

static void make_user(struct answer *answer, struct user *ret)
{
    const struct group_id *groups = answer->groups.items;
    *ret = (struct user){ .uid = answer->uid,
        .gid = answer->gid,
        .name = take_ptr(answer->name),
        .home = take_ptr(answer->home),
        .shell = take_ptr(answer->shell),
        .groups = xcalloc(answer->groups.count + 1, sizeof(gid_t)),
        .n_groups = answer->groups.count };
    for (size_t i = 0; i < ret->n_groups; i++)
        ret->groups[i] = groups[i].gid;
}

static int take(struct question *question, struct user *ret, struct error *err)
{
    struct answer *answer = &question->answer;
    const struct query *query = &question->query;
    if (answer->error == 0 && answer->name != NULL && answer->home != NULL && answer->shell != NULL) {
        make_user(answer, ret);
        user_cache_add(
            question->resolver->cache, &question->stamp, query->uid, query->name, query->logs, ret);
        return 0;
    }
    int r = answer->error > 0 && answer->error < 4096 ? -(int)answer->error : -EIO;
    (void)error_set(err, r, "%s", answer->text != NULL ? answer->text : "cannot look up its user");
    if (answer->hint != NULL && answer->hint[0] != '\0')
        (void)error_hint(err, "%s", answer->hint);
    return r;
}

int user_resolver_find(struct user_resolver *resolver, const struct spool_id *id, uid_t uid, const char *name,
    const char *logs, struct user *ret, struct error *err)
{
    struct question **where = find(resolver, id);
    if (*where == NULL && user_cache_find(resolver->cache, clock_boot_ms(), uid, name, logs, ret))
        return 0;
    if (*where == NULL)
        question_add(resolver, id, uid, name, logs);
    else if ((*where)->state == QUESTION_ANSWERED) {
        int r = take(*where, ret, err);
        question_free(where);
        return r;
    }
    return error_set(err, -EINPROGRESS, "uid %u is being looked up", uid);
}

void user_resolver_drop(struct user_resolver *resolver, const struct spool_id *id)
{
    struct question **where = find(resolver, id);
    if (*where == NULL)
        return;
    question_free(where);
    assign(resolver);
}

void user_resolver_forget(struct user_resolver *resolver)
{
    user_cache_forget(resolver->cache);
}

struct user_resolver *user_resolver_new(struct event_base *base, const struct job_users *users,
    int64_t answer_ms, user_resolved_fn *on_resolved, void *arg)
{
    struct user_resolver *resolver = xcalloc(1, sizeof(*resolver));
    *resolver = (struct user_resolver){
        .base = base, .users = users, .answer_ms = answer_ms, .on_resolved = on_resolved, .arg = arg
    };
    resolver->cache = user_cache_new("/etc");
    return resolver;
}

void user_resolver_free(struct user_resolver *resolver)
{
    if (resolver == NULL)
        return;
    while (resolver->questions != NULL)
        question_free(&resolver->questions);
    while (resolver->helpers != NULL)
        helper_free(resolver->helpers);
    user_cache_free(resolver->cache);
    free(resolver);
}
