/* SPDX-License-Identifier: MIT */
/* libcurl, loaded when mgpud is started with --cluster: without it, mgpud neither needs nor loads it. */
#pragma once

#include <curl/curl.h>

#include "base/error.h"

struct curl_library {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *handle);
    CURLcode (*easy_getinfo)(CURL *handle, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    void (*easy_cleanup)(CURL *handle);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
};

/* Loads and initialises the library; before the first thread. The result is static. */
int curl_library_load(const struct curl_library **ret, struct error *err);
