/* SPDX-License-Identifier: MIT */
#include "fake_curl.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/memory.h"

struct handle {
    struct fake_request request;
    curl_write_callback on_bytes;
    void *target;
};

static fake_curl_answer *answers;

static CURLcode global_init(long flags)
{
    return CURLE_OK;
}

static CURL *easy_init(void)
{
    return xcalloc(1, sizeof(struct handle));
}

static CURLcode set_option(CURL *curl, CURLoption option, ...)
{
    struct handle *handle = curl;
    va_list values;
    va_start(values, option);
    if (option == CURLOPT_URL)
        handle->request.url = va_arg(values, const char *);
    else if (option == CURLOPT_POSTFIELDS)
        handle->request.text = va_arg(values, const char *);
    else if (option == CURLOPT_WRITEFUNCTION)
        handle->on_bytes = va_arg(values, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        handle->target = va_arg(values, void *);
    va_end(values);
    return CURLE_OK;
}

static CURLcode easy_perform(CURL *curl)
{
    const struct handle *handle = curl;
    _cleanup_buffer_ struct buffer answer = { 0 };
    CURLcode code = answers(&handle->request, &answer);
    if (answer.length > 0)
        (void)handle->on_bytes((char *)answer.bytes, 1, answer.length, handle->target);
    return code;
}

static CURLcode get_info(CURL *curl, CURLINFO info, ...)
{
    va_list values;
    va_start(values, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(values, long *) = 200;
    va_end(values);
    return CURLE_OK;
}

static const char *describe(CURLcode code)
{
    return "no answer";
}

static void cleanup(CURL *curl)
{
    free(curl);
}

static struct curl_slist *append_header(struct curl_slist *list, const char *text)
{
    return list;
}

static void free_headers(struct curl_slist *list)
{
}

const struct curl_library *fake_curl(fake_curl_answer *answer)
{
    static const struct curl_library library = {
        .global_init = global_init,
        .easy_init = easy_init,
        .easy_setopt = set_option,
        .easy_perform = easy_perform,
        .easy_getinfo = get_info,
        .easy_strerror = describe,
        .easy_cleanup = cleanup,
        .slist_append = append_header,
        .slist_free_all = free_headers,
    };
    answers = answer;
    return &library;
}
