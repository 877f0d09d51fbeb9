/* SPDX-License-Identifier: MIT */
/*
 * The files are compressed once, at build time, and sent so to everybody: a client that does not name what it
 * accepts has to take it (RFC 9110, 12.5.3), and no browser refuses it. The headers keep everything of other
 * hosts out of the page, and the page out of the frames of others.
 */
#include "controller/web/page.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "controller/http/request.h"

#define INDEX "index.html"

static const struct page_header {
    const char *name, *value;
} headers[] = {
    { "Content-Encoding", "gzip" },
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
    request_reply_file(request, file->type, file->tag, file->bytes, file->length);
}
