/* SPDX-License-Identifier: MIT */
#include "etcd_model.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fake_curl.h"

#define KEYS_MAX   8192
#define LATE_MAX   16
#define LEADER_KEY "mgpu/leader"

struct pair {
    char *key;   // as it is
    char *value; // base64, as it came
    int64_t created, modified;
    int64_t leader; // when it was created
};

struct etcd_model {
    struct pair pairs[KEYS_MAX]; // ordered by key
    size_t n_pairs;
    int64_t revision;
    char *late[LATE_MAX]; // requests that will still happen
    size_t n_late;
    uint32_t delay;
    uint64_t random;
    bool is_spared;
    void (*on_request)(void *arg);
    void *arg;
};

static struct etcd_model *current;

uint32_t etcd_model_random(struct etcd_model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (uint32_t)(model->random >> 16);
}

static char *decode(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t length = text != NULL ? strlen(text) : 0;
    char *bytes = xcalloc(1, length + 1);
    if (length > 0)
        (void)EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)length);
    return bytes; // keys have no NUL, and what was padding is one
}

static json_t *encode(const char *text)
{
    _cleanup_free_ char *out = xcalloc(1, 4 * strlen(text) / 3 + 5);
    (void)EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)strlen(text));
    json_t *value = json_string(out);
    return value;
}

static json_t *number(int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    return json_string(text);
}

/* --- keys --- */

/* The first pair that is not before the key. */
static size_t place_of(const struct etcd_model *model, const char *key)
{
    size_t at = 0;
    while (at < model->n_pairs && strcmp(model->pairs[at].key, key) < 0)
        at++;
    return at;
}

static struct pair *find(struct etcd_model *model, const char *key)
{
    size_t at = place_of(model, key);
    return at < model->n_pairs && strcmp(model->pairs[at].key, key) == 0 ? &model->pairs[at] : NULL;
}

static void put(struct etcd_model *model, const char *key, const char *value)
{
    struct pair *there = find(model, key);
    if (there != NULL) {
        free(there->value);
        there->value = xstrdup(value);
        there->modified = model->revision;
        return;
    }
    int64_t leader = etcd_model_leader(model);
    size_t at = place_of(model, key);
    if (model->n_pairs == KEYS_MAX)
        abort();
    memmove(&model->pairs[at + 1], &model->pairs[at], (model->n_pairs - at) * sizeof(model->pairs[0]));
    model->n_pairs++;
    model->pairs[at] = (struct pair){ .key = xstrdup(key),
        .value = xstrdup(value),
        .created = model->revision,
        .modified = model->revision,
        .leader = leader };
}

static void drop(struct etcd_model *model, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        free(model->pairs[i].key);
        free(model->pairs[i].value);
    }
    memmove(&model->pairs[first], &model->pairs[end], (model->n_pairs - end) * sizeof(model->pairs[0]));
    model->n_pairs -= end - first;
}

static void range_of(struct etcd_model *model, const json_t *range, size_t *first, size_t *end)
{
    char *key = decode(json_object_get(range, "key")), *limit = decode(json_object_get(range, "range_end"));
    *first = place_of(model, key);
    *end = limit[0] != '\0' ? place_of(model, limit) : *first + (find(model, key) != NULL);
    if (*end < *first)
        *end = *first;
    free(key);
    free(limit);
}

/* --- transactions --- */

static bool is_true(struct etcd_model *model, const json_t *compare)
{
    char *key = decode(json_object_get(compare, "key"));
    const struct pair *pair = find(model, key);
    free(key);
    const char *target = json_string_value(json_object_get(compare, "target"));
    if (strcmp(target, "VERSION") == 0)
        return pair != NULL; // GREATER 0
    if (strcmp(target, "MOD") == 0)
        return (pair != NULL ? pair->modified : 0) ==
               strtoll(json_string_value(json_object_get(compare, "mod_revision")), NULL, 10);
    const char *wanted = json_string_value(json_object_get(compare, "create_revision"));
    return (pair != NULL ? pair->created : 0) == strtoll(wanted, NULL, 10);
}

static json_t *read_range(struct etcd_model *model, const json_t *range)
{
    const char *limit_text = json_string_value(json_object_get(range, "limit"));
    size_t first, end, limit = limit_text != NULL ? (size_t)strtoull(limit_text, NULL, 10) : SIZE_MAX;
    json_t *rows = json_array();
    range_of(model, range, &first, &end);
    for (size_t i = first; i < end && i - first < limit; i++)
        (void)json_array_append_new(
            rows, json_pack("{s:o, s:s, s:o, s:o}", "key", encode(model->pairs[i].key), "value",
                      model->pairs[i].value, "create_revision", number(model->pairs[i].created),
                      "mod_revision", number(model->pairs[i].modified)));
    return json_pack("{s:{s:o}}", "response_range", "kvs", rows);
}

static json_t *perform_one(struct etcd_model *model, const json_t *operation)
{
    const json_t *body = json_object_get(operation, "request_put");
    if (body != NULL) {
        char *key = decode(json_object_get(body, "key"));
        const char *value = json_string_value(json_object_get(body, "value"));
        put(model, key, value != NULL ? value : "");
        free(key);
        return json_pack("{s:{}}", "response_put");
    }
    body = json_object_get(operation, "request_delete_range");
    if (body == NULL)
        return read_range(model, json_object_get(operation, "request_range"));
    size_t first, end;
    range_of(model, body, &first, &end);
    drop(model, first, end);
    return json_pack("{s:{}}", "response_delete_range");
}

/* Returns the answer's text. */
static char *carry_out(struct etcd_model *model, const char *text)
{
    json_t *request = json_loads(text, 0, NULL), *responses = json_array();
    const json_t *compare, *operation;
    size_t i;
    bool is_success = true;
    json_array_foreach(json_object_get(request, "compare"), i, compare) is_success =
        is_success && is_true(model, compare);
    model->revision++;
    json_array_foreach(json_object_get(request, is_success ? "success" : "failure"), i, operation)(void)
        json_array_append_new(responses, perform_one(model, operation));
    json_t *answer = json_pack("{s:{s:o}, s:b, s:o}", "header", "revision", number(model->revision),
        "succeeded", (int)is_success, "responses", responses);
    char *out = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    json_decref(request);
    return out;
}

static void carry_out_late(struct etcd_model *model, bool is_all)
{
    while (model->n_late > 0 && (is_all || etcd_model_random(model) % model->delay == 0)) {
        char *text = model->late[0];
        memmove(&model->late[0], &model->late[1], --model->n_late * sizeof(model->late[0]));
        free(carry_out(model, text));
        free(text);
    }
}

/* --- libcurl --- */

static CURLcode reply(struct etcd_model *model, const char *request, struct buffer *ret, bool is_heard)
{
    _cleanup_free_ char *text = carry_out(model, request);
    if (is_heard)
        buffer_append(ret, text, strlen(text));
    return is_heard ? CURLE_OK : CURLE_OPERATION_TIMEDOUT;
}

/* One in four requests meets a fault: it is lost, its answer is lost, or it happens later. */
static CURLcode answer(const struct fake_request *request, struct buffer *ret)
{
    struct etcd_model *model = current;
    if (model->is_spared)
        return reply(model, request->text, ret, true);
    _cleanup_free_ char *own = xstrdup(request->text);
    uint32_t fault = etcd_model_random(model) % 12;
    CURLcode code = CURLE_OPERATION_TIMEDOUT;
    model->on_request(model->arg);
    carry_out_late(model, false);
    if (fault == 0 && model->n_late < LATE_MAX)
        model->late[model->n_late++] = xstrdup(own);
    else if (fault != 1)
        code = reply(model, own, ret, fault != 2);
    return code;
}

const struct curl_library *etcd_model_curl(struct etcd_model *model)
{
    return fake_curl(answer);
}

/* --- leadership and life --- */

int64_t etcd_model_leader(const struct etcd_model *model)
{
    for (size_t i = 0; i < model->n_pairs; i++)
        if (strcmp(model->pairs[i].key, LEADER_KEY) == 0)
            return model->pairs[i].created;
    return 0;
}

int64_t etcd_model_leader_at(const struct etcd_model *model, const char *key)
{
    size_t at = place_of(model, key);
    return at < model->n_pairs && strcmp(model->pairs[at].key, key) == 0 ? model->pairs[at].leader : -1;
}

int64_t etcd_model_claim(struct etcd_model *model)
{
    model->revision++;
    put(model, LEADER_KEY, "");
    return model->revision;
}

void etcd_model_end_lease(struct etcd_model *model)
{
    size_t at = place_of(model, LEADER_KEY);
    if (find(model, LEADER_KEY) != NULL)
        drop(model, at, at + 1);
    model->revision++;
}

void etcd_model_spare(struct etcd_model *model, bool is_spared)
{
    carry_out_late(model, true);
    model->is_spared = is_spared;
}

struct etcd_model *etcd_model_new(uint64_t seed, uint32_t delay, void (*on_request)(void *arg), void *arg)
{
    struct etcd_model *model = xcalloc(1, sizeof(*model));
    model->random = seed * 0x9e3779b97f4a7c15ULL | 1;
    model->delay = delay;
    model->on_request = on_request;
    model->arg = arg;
    current = model;
    return model;
}

void etcd_model_free(struct etcd_model *model)
{
    carry_out_late(model, true);
    drop(model, 0, model->n_pairs);
    free(model);
    current = NULL;
}
