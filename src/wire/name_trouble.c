/* SPDX-License-Identifier: MIT */
#include "wire/name_trouble.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"

struct row {
    int number; // EAI_ code
    int code;   // of the resulting error
    const char *text, *hint;
};

static const struct row rows[] = {
    { EAI_NONAME, -ENXIO, "unknown host name", "check the spelling, DNS and /etc/hosts" },
    { EAI_NODATA, -ENXIO, "the name has no address", "check DNS and /etc/hosts" },
    { EAI_ADDRFAMILY, -ENXIO, "the name has no address of this kind", "check DNS and /etc/hosts" },
    { EAI_AGAIN, -EAGAIN, "the name servers do not respond",
        "check the spelling, /etc/hosts and /etc/resolv.conf, or use the numerical address" },
    { EAI_FAIL, -EAGAIN, "the name servers failed", "check /etc/resolv.conf, or use the numerical address" },
    { EAI_SERVICE, -EINVAL, "the port is not a number", "write HOST:PORT" },
};

static const struct row *find(int code)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].number == code)
            return &rows[i];
    return NULL;
}

char *name_trouble_text(int code)
{
    const struct row *row = find(code);
    return row != NULL ? xasprintf("%s (%s)", row->text, gai_strerror(code)) : xstrdup(gai_strerror(code));
}

int name_trouble(int code, const char *where, struct error *err)
{
    const struct row *row = find(code);
    _cleanup_free_ char *text = name_trouble_text(code);
    int r = error_set(err, row != NULL ? row->code : -ENXIO, "cannot reach %.200s: %s", where, text);
    if (row != NULL)
        (void)error_hint(err, "%s", row->hint);
    return r;
}
