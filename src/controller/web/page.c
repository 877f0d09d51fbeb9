/* SPDX-License-Identifier: MIT */
/*
 * The files are compressed once, at build time, and sent in this form to clients that accept gzip; others
 * (curl, a script) get the text (RFC 9110, 12.5.3). The headers keep resources of other hosts out of the
 * page, and the page out of frames of other sites.
 */
#include "controller/web/page.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "controller/http/request.h"

#define INDEX "index.html"

static const struct page_header {
    const char *name, *value;
} headers[] = {
    { "Vary", "Accept-Encoding" },
    { "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'" },
    { "X-Frame-Options", "DENY" },
    { "Referrer-Policy", "no-referrer" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
};

static const struct page_file *find_file(const char *name)
{
    size_t count;
    const struct page_file *files = page_files(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    return NULL;
}

/* True if one part of Accept-Encoding, "gzip;q=0.5", has a weight above 0. */
static bool has_weight(const char *part, size_t length)
{
    const char *mark = memchr(part, ';', length);
    if (mark == NULL)
        return true;
    const char *end = part + length;
    for (mark++; mark < end && isspace((unsigned char)*mark); mark++)
        ;
    return end - mark < 3 || strncasecmp(mark, "q=", 2) != 0 || strtod(mark + 2, NULL) > 0;
}

/* True if the value of Accept-Encoding, or NULL, allows gzip. The name takes precedence over "*". */
static bool accepts_gzip(const char *header)
{
    bool is_any = false;
    for (const char *part = header; part != NULL && *part != '\0';) {
        part += strspn(part, ", \t");
        size_t length = strcspn(part, ","), name = strcspn(part, ",; \t");
        if ((name == 4 && strncasecmp(part, "gzip", name) == 0) ||
            (name == 6 && strncasecmp(part, "x-gzip", name) == 0))
            return has_weight(part, length);
        if (name == 1 && *part == '*')
            is_any = has_weight(part, length);
        part += length;
    }
    return is_any;
}

void handle_page(struct request *request)
{
    const struct page_file *file = find_file(request->name[0] == '\0' ? INDEX : request->name);
    if (file == NULL) {
        struct error err = { 0 };
        (void)error_set(&err, -ENOENT, "the page has no file %s", request->name);
        request_reply_problem(request, &err);
        return;
    }
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        request_add_header(request, headers[i].name, headers[i].value);
    if (!accepts_gzip(http_message_header(&request->message, "accept-encoding"))) {
        request_reply_file(request, file->type, file->plain_tag, file->plain, file->plain_length);
        return;
    }
    request_add_header(request, "Content-Encoding", "gzip");
    request_reply_file(request, file->type, file->tag, file->bytes, file->length);
}
