/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what etcd answers, with a libcurl that is none: a standby reads the log and the snapshot, a
 * leader appends, renews its lease; a controller reads the keys of the cluster, the reports of the others and
 * how etcd's members are. Lines of the input are the answers, one after the other; an empty one is
 * a failure of the connection.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/cluster/cluster_log.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/etcd.h"
#include "fake_curl.h"
#include "fuzz.h"
#include "input.h"

#define ANSWERS_MAX 16

static struct input answers;
static size_t asked;

static CURLcode answer(const struct fake_request *request, struct buffer *ret)
{
    const uint8_t *line = answers.bytes + answers.at;
    size_t left = answers.length - answers.at;
    const uint8_t *end = left > 0 ? memchr(line, '\n', left) : NULL;
    size_t length = end != NULL ? (size_t)(end - line) : left;
    answers.at += length + (end != NULL);
    if (asked++ == ANSWERS_MAX || length == 0)
        return CURLE_OPERATION_TIMEDOUT;
    buffer_append(ret, line, length);
    return CURLE_OK;
}

static bool may_continue(void *arg)
{
    return answers.at < answers.length && asked < ANSWERS_MAX;
}

static void append(struct etcd *etcd)
{
    const char *_Atomic trouble = NULL;
    const struct cluster_appending appending = {
        .etcd = etcd, .revision = 5, .may_continue = may_continue, .trouble = &trouble
    };
    const struct store_entry entry = {
        .before = { 7, 70 }, .position = { 8, 80 }, .changes = "x", .length = 1
    };
    struct error err;
    (void)cluster_log_append(&appending, &entry, &err);
}

static bool is_header_text(const char *text)
{
    return text[strcspn(text, " ,;\"\r\n")] == '\0';
}

/* Each line as the report of a controller, and as the status of a member of etcd. */
static void read_reports(void)
{
    while (may_continue(NULL)) {
        struct cluster_member member = { 0 };
        struct buffer line = { 0 };
        if (answer(NULL, &line) == CURLE_OK && cluster_member_read(line.bytes, line.length, &member)) {
            json_t *trouble = json_string(member.trouble);
            must_be(member.name[0] != '\0' && trouble != NULL);
            must_be(is_header_text(member.name) && is_header_text(member.api) &&
                    is_header_text(member.nodes) && is_header_text(member.version));
            json_decref(trouble);
        }
        json_t *status = json_loadb((const char *)line.bytes, line.length, 0, NULL);
        must_be(cluster_server_trouble(status) != NULL);
        json_decref(status);
        buffer_clear(&line);
    }
}

/* All keys, or none. */
static void read_identity(struct etcd *etcd)
{
    static const char *const names[] = { "authority.key", "authority.crt", "server.key", "server.crt" };
    char dir[] = "/dev/shm/mgpu-fuzz-XXXXXX";
    struct error err = { 0 };
    must_be(mkdtemp(dir) != NULL);
    int r = cluster_identity_read(etcd, dir, &err), fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must_be(fd >= 0 && (r >= 0 || err.message[0] != '\0'));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        must_be((unlinkat(fd, names[i], 0) == 0) == (r > 0));
    (void)close(fd);
    must_be(rmdir(dir) == 0);
}

static void start(const uint8_t *bytes, size_t length)
{
    answers = (struct input){ bytes, length, 0 };
    asked = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct etcd_settings settings = { 0 };
    struct error err;
    struct cluster_view view = { 0 };
    start(bytes, length);
    if (etcd_settings_parse("etcd://a:1", &settings, &err) < 0)
        abort();
    struct etcd *etcd = etcd_new(fake_curl(answer), &settings);
    if (cluster_log_read(etcd, 1, &view, &err) == 0) {
        char path[] = "/tmp/mgpu-fuzz-XXXXXX";
        int fd = mkstemp(path);
        if (fd < 0)
            abort();
        (void)unlink(path);
        (void)cluster_log_get_base(etcd, &view.base, fd, &err);
        (void)close(fd);
        cluster_view_clear(&view);
    }
    if (length % 16 == 0) // it waits after each failure
        append(etcd);
    start(bytes, length);
    read_identity(etcd);
    start(bytes, length);
    read_reports();
    etcd_free(etcd);
    etcd_settings_clear(&settings);
    return 0;
}
