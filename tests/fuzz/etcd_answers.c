/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what etcd answers, with a libcurl that is none: a standby reads the log and the snapshot, a
 * leader appends, renews its lease. Lines of the input are the answers, one after the other; an empty one is
 * a failure of the connection.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/cluster/cluster_log.h"
#include "controller/cluster/curl_library.h"
#include "controller/cluster/etcd.h"
#include "input.h"

#define ANSWERS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct input answers;
static size_t asked;

struct handle {
    curl_write_callback on_bytes;
    void *target;
};

static CURL *easy_init(void)
{
    return xcalloc(1, sizeof(struct handle));
}

static CURLcode set_option(CURL *curl, CURLoption option, ...)
{
    struct handle *handle = curl;
    va_list values;
    va_start(values, option);
    if (option == CURLOPT_WRITEFUNCTION)
        handle->on_bytes = va_arg(values, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        handle->target = va_arg(values, void *);
    va_end(values);
    return CURLE_OK;
}

static CURLcode easy_perform(CURL *curl)
{
    struct handle *handle = curl;
    const uint8_t *line = answers.bytes + answers.at;
    size_t left = answers.length - answers.at;
    const uint8_t *end = left > 0 ? memchr(line, '\n', left) : NULL;
    size_t length = end != NULL ? (size_t)(end - line) : left;
    answers.at += length + (end != NULL);
    if (asked++ == ANSWERS_MAX || length == 0)
        return CURLE_OPERATION_TIMEDOUT;
    _cleanup_free_ char *copy = memcpy(xcalloc(1, length), line, length);
    (void)handle->on_bytes(copy, 1, length, handle->target);
    return CURLE_OK;
}

static CURLcode get_info(CURL *curl, CURLINFO info, ...)
{
    va_list values;
    (void)curl;
    va_start(values, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(values, long *) = 200;
    va_end(values);
    return CURLE_OK;
}

static const char *describe(CURLcode code)
{
    (void)code;
    return "no answer";
}

static struct curl_slist *append_header(struct curl_slist *list, const char *text)
{
    (void)text;
    return list;
}

static void free_headers(struct curl_slist *list)
{
    (void)list;
}

static const struct curl_library library = {
    .easy_init = easy_init,
    .easy_setopt = set_option,
    .easy_perform = easy_perform,
    .easy_getinfo = get_info,
    .easy_strerror = describe,
    .easy_cleanup = free,
    .slist_append = append_header,
    .slist_free_all = free_headers,
};

static bool may_continue(void *arg)
{
    (void)arg;
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct etcd_settings settings = { 0 };
    struct error err;
    struct cluster_view view = { 0 };
    answers = (struct input){ bytes, length, 0 };
    asked = 0;
    if (etcd_settings_parse("etcd://a:1", &settings, &err) < 0)
        abort();
    struct etcd *etcd = etcd_new(&library, &settings);
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
    etcd_free(etcd);
    etcd_settings_clear(&settings);
    return 0;
}
