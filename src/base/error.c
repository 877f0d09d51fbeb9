/* SPDX-License-Identifier: MIT */
/* Messages are bounded: longer ones are cut, never rejected. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    err->code = code;
    err->hint[0] = '\0';
    err->kind = 0;
    return code;
}

int error_set_errno(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof(err->message))
        (void)snprintf(err->message + n, sizeof(err->message) - (size_t)n, ": %s", strerror(-code));
    err->code = code;
    err->hint[0] = '\0';
    err->kind = 0;
    return code;
}

int error_wrap(struct error *err, const char *format, ...)
{
    if (err == NULL)
        return -1;
    char context[sizeof(err->message)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));
    (void)snprintf(err->message, sizeof(err->message), "%.200s: %.300s", context, inner);
    return err->code;
}

int error_hint(struct error *err, const char *format, ...)
{
    if (err == NULL)
        return -1;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->hint, sizeof(err->hint), format, args);
    va_end(args);
    return err->code;
}

int error_mark(struct error *err, unsigned kind, int code)
{
    if (err != NULL)
        err->kind = kind;
    return code;
}

int error_recode(struct error *err, int code)
{
    if (err != NULL)
        err->code = code;
    return code;
}
