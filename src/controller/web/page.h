/* SPDX-License-Identifier: MIT */
/* The web page: its files, which are part of the program, and the route that serves them. */
#pragma once

#include <stddef.h>

struct request;

struct page_file {
    const char *name, *type, *tag; // the entity tag, in quotes
    const unsigned char *bytes;    // compressed by gzip
    size_t length;
    const char *plain_tag; // the same file, not compressed
    const unsigned char *plain;
    size_t plain_length;
};

/* All files; made from web/ by tools/embed-web. */
const struct page_file *page_files(size_t *ret_count);

/* Changes with any of the files, so an open page detects a new version of mgpud. */
const char *page_tag(void);

/* GET / and GET /page/{name}. The files contain nothing confidential. */
void handle_page(struct request *request);
