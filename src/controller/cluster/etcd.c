/* SPDX-License-Identifier: MIT */
#include "controller/cluster/etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "controller/cluster/curl_library.h"
#include "controller/cluster/etcd_trouble.h"

#define PORT           "2379"
#define CONNECT_MS     2000L
#define ANSWER_MAX     (64U << 20)
#define ENDPOINTS_MAX  16U
#define PREFIX_DEFAULT "mgpu"
#define PREFIX_MAX     100
#define RETRY_NS       100000000L

/* --- settings --- */

static int add_endpoint(
    struct etcd_settings *settings, const char *scheme, const char *text, size_t length, struct error *err)
{
    _cleanup_free_ char *host = xstrndup(text, length);
    const char *bracket = strrchr(host, ']'), *colon = strrchr(host, ':');
    bool has_port = colon != NULL && (bracket == NULL ? strchr(host, ':') == colon : colon > bracket);
    bool is_bare = bracket == NULL && colon != NULL && !has_port; // an IPv6 address without brackets
    if (length == 0 || is_bare || strpbrk(host, "@/?# \t") != NULL)
        return error_set(err, -EINVAL, "--cluster: '%.100s' is not HOST:PORT", host);
    if (settings->endpoints.count == ENDPOINTS_MAX)
        return error_set(err, -EINVAL, "--cluster: at most %u endpoints", ENDPOINTS_MAX);
    strings_take(&settings->endpoints, xasprintf("%s://%s%s", scheme, host, has_port ? "" : ":" PORT));
    return 0;
}

int etcd_settings_parse(const char *text, struct etcd_settings *ret, struct error *err)
{
    struct etcd_settings settings = { 0 };
    bool is_tls = strncmp(text, "etcds://", 8) == 0;
    if (!is_tls && strncmp(text, "etcd://", 7) != 0)
        return error_set(err, -EINVAL, "--cluster: '%.100s' does not begin with etcd:// or etcds://", text);
    const char *at = text + (is_tls ? 8 : 7), *end = at + strcspn(at, "/");
    const char *prefix = *end == '/' && end[1] != '\0' ? end + 1 : PREFIX_DEFAULT;
    int r = 0;
    if (strlen(prefix) > PREFIX_MAX || strpbrk(prefix, " \t\n?#") != NULL)
        r = error_set(err, -EINVAL, "--cluster: '%.120s' cannot be a prefix of keys", prefix);
    while (r == 0 && at <= end) {
        size_t length = strcspn(at, ",/");
        r = add_endpoint(&settings, is_tls ? "https" : "http", at, length, err);
        at += length + 1;
    }
    settings.prefix = xstrdup(prefix);
    if (r < 0)
        etcd_settings_clear(&settings);
    else
        *ret = settings;
    return r;
}

void etcd_settings_clear(struct etcd_settings *settings)
{
    strings_clear(&settings->endpoints);
    free(settings->prefix);
    free(settings->ca);
    free(settings->cert);
    free(settings->key);
    *settings = (struct etcd_settings){ 0 };
}

/* --- requests --- */

struct etcd {
    const struct curl_library *curl;
    struct etcd_settings *settings;
    CURL *handle;
    struct curl_slist *headers;
    struct buffer answer;
    char trouble[CURL_ERROR_SIZE];
    size_t endpoint;                      // index of the endpoint in use
    const struct etcd_watching *watching; // during a watch
    bool has_watched;                     // it was created
    bool may_elect;                       // see etcd_may_elect()
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct buffer *answer = arg;
    if (size * count > ANSWER_MAX - answer->length)
        return 0;
    buffer_append(answer, bytes, size * count);
    return size * count;
}

static void set_up(struct etcd *etcd)
{
    const struct curl_library *curl = etcd->curl;
    const struct etcd_settings *settings = etcd->settings;
    CURL *handle = etcd->handle;
    etcd->headers = curl->slist_append(NULL, "Content-Type: application/json");
    etcd->headers = curl->slist_append(etcd->headers, "Expect:");
    (void)curl->easy_setopt(handle, CURLOPT_HTTPHEADER, etcd->headers);
    (void)curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    /* The same as without TLS. With one request at a time, HTTP/2 has no benefit, and its broken connections
     * produce many different errors. */
    (void)curl->easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl->easy_setopt(handle, CURLOPT_PROXY, ""); // not one from the environment
    (void)curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    (void)curl->easy_setopt(handle, CURLOPT_ERRORBUFFER, etcd->trouble);
    (void)curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl->easy_setopt(handle, CURLOPT_WRITEDATA, &etcd->answer);
    if (settings->ca != NULL)
        (void)curl->easy_setopt(handle, CURLOPT_CAINFO, settings->ca);
    if (settings->cert != NULL)
        (void)curl->easy_setopt(handle, CURLOPT_SSLCERT, settings->cert);
    if (settings->key != NULL)
        (void)curl->easy_setopt(handle, CURLOPT_SSLKEY, settings->key);
}

struct etcd *etcd_new(const struct curl_library *curl, struct etcd_settings *settings)
{
    struct etcd *etcd = xcalloc(1, sizeof(*etcd));
    *etcd = (struct etcd){ .curl = curl,
        .settings = settings,
        .handle = curl->easy_init(),
        .endpoint = atomic_load(&settings->endpoint) };
    if (etcd->handle == NULL)
        abort(); // memory
    set_up(etcd);
    return etcd;
}

void etcd_free(struct etcd *etcd)
{
    if (etcd == NULL)
        return;
    etcd->curl->easy_cleanup(etcd->handle);
    etcd->curl->slist_free_all(etcd->headers);
    buffer_clear(&etcd->answer);
    free(etcd);
}

/* Interprets etcd's error, and whether it is certain that nothing was changed. With any other error, the
 * change may have been made. */
static int refusal(const char *text)
{
    static const struct {
        const char *part;
        int code;
    } rows[] = {
        { "database space exceeded", -ENOSPC },
        { "request is too large", -E2BIG },
        { "too many operations", -E2BIG },
        { "requested lease not found", -ENOENT },
        { "duplicate key", -ECOMM },
        { "permission denied", -ECOMM },
        { "invalid auth token", -ECOMM },
        { "required revision has been compacted", -ECOMM },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strstr(text, rows[i].part) != NULL)
            return rows[i].code;
    return -EAGAIN;
}

/* The server closed the connection, or it broke, before a response. */
static bool is_cut(CURLcode code)
{
    switch (code) {
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
    }
}

/*
 * With TLS 1.3 a server refuses a certificate after the handshake, and its reason may be lost with the
 * connection. With 1.2 it refuses during the handshake, so a harmless request is sent over 1.2 only to obtain
 * the reason.
 */
static CURLcode ask_why(struct etcd *etcd)
{
    const struct curl_library *curl = etcd->curl;
    _cleanup_free_ char *url = xasprintf("%s/health", etcd->settings->endpoints.items[etcd->endpoint]);
    etcd->trouble[0] = '\0';
    (void)curl->easy_setopt(etcd->handle, CURLOPT_URL, url);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_HTTPGET, 1L);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_MAX_TLSv1_2);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_FORBID_REUSE, 1L);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_TIMEOUT_MS, CONNECT_MS);
    CURLcode code = curl->easy_perform(etcd->handle);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_POST, 1L);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_DEFAULT);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_FRESH_CONNECT, 0L);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_FORBID_REUSE, 0L);
    etcd->answer.length = 0;
    return code;
}

/* etcd checks its certificate revocation list after the handshake, and then closes the connection without an
 * error. */
static bool is_closed_after_handshake(struct etcd *etcd, CURLcode code)
{
    curl_off_t handshake_us = 0;
    (void)etcd->curl->easy_getinfo(etcd->handle, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    return is_cut(code) && handshake_us > 0;
}

static int explain_failure(struct etcd *etcd, CURLcode code, struct error *err)
{
    const char *endpoint = etcd->settings->endpoints.items[etcd->endpoint];
    bool is_tls = strncmp(endpoint, "https:", 6) == 0, is_refused = false;
    char before[CURL_ERROR_SIZE];
    (void)snprintf(before, sizeof(before), "%s", etcd->trouble);
    if (is_tls && is_cut(code) && strstr(before, "alert") == NULL) {
        CURLcode why = ask_why(etcd);
        is_refused = etcd->settings->cert != NULL && is_closed_after_handshake(etcd, why);
        if (why == CURLE_OK || etcd->trouble[0] == '\0')
            (void)snprintf(etcd->trouble, sizeof(etcd->trouble), "%s", before);
    }
    const char *text = etcd->trouble[0] != '\0' ? etcd->trouble : etcd->curl->easy_strerror(code);
    return is_refused ? etcd_trouble_describe_refusal(etcd->settings, endpoint, err)
                      : etcd_trouble_describe(etcd->settings, endpoint, code, text, err);
}

static CURLcode send_request(struct etcd *etcd, const char *path, const char *text, int timeout_ms)
{
    const struct curl_library *curl = etcd->curl;
    _cleanup_free_ char *url = xasprintf("%s/v3/%s", etcd->settings->endpoints.items[etcd->endpoint], path);
    etcd->answer.length = 0;
    etcd->trouble[0] = '\0';
    (void)curl->easy_setopt(etcd->handle, CURLOPT_URL, url);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_POSTFIELDS, text);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
    (void)curl->easy_setopt(etcd->handle, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    return curl->easy_perform(etcd->handle);
}

static int perform(struct etcd *etcd, const char *path, const char *text, int timeout_ms, struct error *err)
{
    CURLcode code = send_request(etcd, path, text, timeout_ms);
    etcd->may_elect = code == CURLE_OPERATION_TIMEDOUT;
    return code == CURLE_OK ? 0 : explain_failure(etcd, code, err);
}

static int read_answer(struct etcd *etcd, json_t **ret, struct error *err)
{
    const char *endpoint = etcd->settings->endpoints.items[etcd->endpoint];
    long status = 0;
    (void)etcd->curl->easy_getinfo(etcd->handle, CURLINFO_RESPONSE_CODE, &status);
    json_t *answer =
        json_loadb((const char *)etcd->answer.bytes, etcd->answer.length, JSON_DISABLE_EOF_CHECK, NULL);
    const char *text = json_string_value(json_object_get(answer, "error"));
    if (status == 200 && json_is_object(answer) && text == NULL) {
        *ret = answer;
        return 0;
    }
    int code = text != NULL ? refusal(text) : -EAGAIN;
    etcd->may_elect = text != NULL;
    (void)error_set(err, code, "etcd %s answers: %.200s (%ld)", endpoint,
        text != NULL ? text : "something that is not JSON", status);
    json_decref(answer);
    return code;
}

/*
 * An endpoint that fails, or hangs until the timeout, costs this time only once: new clients begin at the
 * next one, and clients that use the failed one move to where others are.
 */
static void leave_endpoint(struct etcd *etcd)
{
    size_t common = etcd->endpoint, next = (etcd->endpoint + 1) % etcd->settings->endpoints.count;
    bool is_first = atomic_compare_exchange_strong(&etcd->settings->endpoint, &common, next);
    etcd->endpoint = is_first ? next : common;
}

int etcd_call(
    struct etcd *etcd, const char *path, json_t *body, int timeout_ms, json_t **ret, struct error *err)
{
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (text == NULL)
        abort(); // memory
    int r = perform(etcd, path, text, timeout_ms, err);
    free(text);
    if (r == 0)
        r = read_answer(etcd, ret, err);
    if (r == -EAGAIN)
        leave_endpoint(etcd);
    return r;
}

bool etcd_may_elect(const struct etcd *etcd)
{
    return etcd->may_elect;
}

void etcd_choose(struct etcd *etcd, size_t endpoint)
{
    etcd->endpoint = endpoint % etcd->settings->endpoints.count;
}

void etcd_pause(void)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
}

int64_t etcd_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        return json_integer_value(value);
    const char *text = json_string_value(value);
    return text != NULL ? (int64_t)strtoll(text, NULL, 10) : 0;
}

/* --- base64 --- */

static json_t *encode(const void *bytes, size_t length)
{
    unsigned char *text = xcalloc(1, 4 * ((length + 2) / 3) + 1);
    int n = EVP_EncodeBlock(text, bytes, (int)length);
    json_t *value = json_stringn((const char *)text, (size_t)n);
    free(text);
    return value;
}

static bool decode(const json_t *value, struct buffer *out)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value), padding = 0;
    if (text == NULL) // an empty value is omitted
        return value == NULL;
    if (length == 0)
        return true;
    unsigned char *bytes = xcalloc(1, length);
    int n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length);
    while (padding < 2 && text[length - 1 - padding] == '=')
        padding++;
    if (n >= (int)padding)
        buffer_append(out, bytes, (size_t)n - padding);
    free(bytes);
    return n >= 0;
}

static json_t *key_of(const struct etcd *etcd, const char *name)
{
    _cleanup_free_ char *key = xasprintf("%s/%s", etcd->settings->prefix, name);
    return encode(key, strlen(key));
}

/* --- watches --- */

static json_t *range(const struct etcd *etcd, const char *name, const char *end)
{
    json_t *keys = json_pack("{s:o}", "key", key_of(etcd, name));
    if (end != NULL)
        (void)json_object_set_new(keys, "range_end", key_of(etcd, end));
    return keys;
}

static size_t on_watch_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct etcd *etcd = arg;
    const struct etcd_watching *watching = etcd->watching;
    static const char cancelled[] = "\"canceled\":true";
    etcd->has_watched = true;
    watching->on_bytes(watching->arg);
    return memmem(bytes, size * count, cancelled, sizeof(cancelled) - 1) != NULL ? 0 : size * count;
}

static int on_progress(void *arg, curl_off_t all, curl_off_t now, curl_off_t up_all, curl_off_t up)
{
    const struct etcd_watching *watching = arg;
    return !watching->may_continue(watching->arg);
}

int etcd_watch(struct etcd *etcd, const char *name, const char *end, int timeout_ms,
    const struct etcd_watching *watching, struct error *err)
{
    const struct curl_library *curl = etcd->curl;
    json_t *body = json_pack("{s:o}", "create_request", range(etcd, name, end));
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (text == NULL)
        abort(); // memory
    etcd->watching = watching;
    etcd->has_watched = false;
    (void)curl->easy_setopt(etcd->handle, CURLOPT_WRITEFUNCTION, on_watch_bytes);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_WRITEDATA, etcd);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_XFERINFODATA, watching);
    (void)curl->easy_setopt(etcd->handle, CURLOPT_NOPROGRESS, 0L);
    CURLcode code = send_request(etcd, "watch", text, timeout_ms);
    free(text);
    if (code == CURLE_OPERATION_TIMEDOUT && etcd->has_watched)
        return 0;
    etcd_choose(etcd, etcd->endpoint + 1);
    return code == CURLE_OK ? error_set(err, -EAGAIN, "etcd ended the watch")
                            : error_set(err, -EAGAIN, "etcd: %.200s", etcd->trouble);
}

/* --- transactions --- */

static void add(json_t **list, json_t *item)
{
    if (*list == NULL)
        *list = json_array();
    (void)json_array_append_new(*list, item);
}

static json_t *number_text(int64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    return json_string(text);
}

void etcd_txn_if_created_at(struct etcd_txn *txn, const struct etcd *etcd, const char *name, int64_t revision)
{
    add(&txn->compare, json_pack("{s:o, s:s, s:s, s:o}", "key", key_of(etcd, name), "target", "CREATE",
                           "result", "EQUAL", "create_revision", number_text(revision)));
}

void etcd_txn_if_modified_at(
    struct etcd_txn *txn, const struct etcd *etcd, const char *name, int64_t revision)
{
    add(&txn->compare, json_pack("{s:o, s:s, s:s, s:o}", "key", key_of(etcd, name), "target", "MOD", "result",
                           "EQUAL", "mod_revision", number_text(revision)));
}

void etcd_txn_if_exists(struct etcd_txn *txn, const struct etcd *etcd, const char *name)
{
    add(&txn->compare, json_pack("{s:o, s:s, s:s, s:s}", "key", key_of(etcd, name), "target", "VERSION",
                           "result", "GREATER", "version", "0"));
}

void etcd_txn_put(struct etcd_txn *txn, const struct etcd *etcd, const char *name, const void *bytes,
    size_t length, int64_t lease)
{
    json_t *put = json_pack("{s:o, s:o}", "key", key_of(etcd, name), "value", encode(bytes, length));
    if (lease != 0)
        (void)json_object_set_new(put, "lease", number_text(lease));
    add(&txn->success, json_pack("{s:o}", "request_put", put));
}

void etcd_txn_delete(struct etcd_txn *txn, const struct etcd *etcd, const char *name, const char *end)
{
    add(&txn->success, json_pack("{s:o}", "request_delete_range", range(etcd, name, end)));
}

void etcd_txn_read(
    struct etcd_txn *txn, const struct etcd *etcd, const char *name, const char *end, int limit)
{
    json_t *keys = range(etcd, name, end);
    if (limit > 0)
        (void)json_object_set_new(keys, "limit", number_text(limit));
    add(&txn->success, json_pack("{s:o}", "request_range", keys));
}

void etcd_txn_otherwise_read(struct etcd_txn *txn, const struct etcd *etcd, const char *name)
{
    add(&txn->failure, json_pack("{s:o}", "request_range", range(etcd, name, NULL)));
}

static int read_key(const struct etcd *etcd, const json_t *row, struct etcd_result *result, struct error *err)
{
    _cleanup_buffer_ struct buffer key = { 0 };
    size_t prefix = strlen(etcd->settings->prefix) + 1;
    result->keys = xreallocarray(result->keys, result->n_keys + 1, sizeof(*result->keys));
    struct etcd_key *next = &result->keys[result->n_keys];
    *next = (struct etcd_key){ .created = etcd_number(row, "create_revision"),
        .modified = etcd_number(row, "mod_revision"),
        .lease = etcd_number(row, "lease") };
    if (!decode(json_object_get(row, "key"), &key) || key.length < prefix)
        return error_set(err, -EBADMSG, "etcd returned a key that is not ours");
    next->name = xstrdup(buffer_text(&key) + prefix);
    result->n_keys++;
    if (!decode(json_object_get(row, "value"), &next->value))
        return error_set(
            err, -EBADMSG, "the value of %s/%.100s is not base64", etcd->settings->prefix, next->name);
    return 0;
}

static int read_result(
    const struct etcd *etcd, const json_t *answer, struct etcd_result *result, struct error *err)
{
    const json_t *response, *row;
    size_t i, k;
    int r = 0;
    result->is_success = json_is_true(json_object_get(answer, "succeeded"));
    result->revision = etcd_number(json_object_get(answer, "header"), "revision");
    json_array_foreach(json_object_get(answer, "responses"), i, response)
    {
        const json_t *rows = json_object_get(json_object_get(response, "response_range"), "kvs");
        json_array_foreach(rows, k, row) if (r == 0) r = read_key(etcd, row, result, err);
    }
    return r;
}

int etcd_commit(
    struct etcd *etcd, struct etcd_txn *txn, int timeout_ms, struct etcd_result *ret, struct error *err)
{
    json_t *body = json_object(), *answer = NULL;
    struct etcd_result result = { 0 };
    if (txn->compare != NULL)
        (void)json_object_set_new(body, "compare", txn->compare);
    if (txn->success != NULL)
        (void)json_object_set_new(body, "success", txn->success);
    if (txn->failure != NULL)
        (void)json_object_set_new(body, "failure", txn->failure);
    *txn = (struct etcd_txn){ 0 };
    int r = etcd_call(etcd, "kv/txn", body, timeout_ms, &answer, err);
    if (r < 0)
        return r;
    r = read_result(etcd, answer, &result, err);
    json_decref(answer);
    if (r == 0)
        *ret = result;
    else
        etcd_result_clear(&result);
    return r;
}

void etcd_result_clear(struct etcd_result *result)
{
    for (size_t i = 0; i < result->n_keys; i++) {
        free(result->keys[i].name);
        buffer_clear(&result->keys[i].value);
    }
    free(result->keys);
    *result = (struct etcd_result){ 0 };
}

const struct etcd_key *etcd_result_find(const struct etcd_result *result, const char *name)
{
    for (size_t i = 0; i < result->n_keys; i++)
        if (strcmp(result->keys[i].name, name) == 0)
            return &result->keys[i];
    return NULL;
}
