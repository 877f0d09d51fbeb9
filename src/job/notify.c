/* SPDX-License-Identifier: MIT */
/*
 * The prefix of a target determines its kind: `mail`, `mail:`, or a scheme and "://". Anything else is a
 * command. Only a few characters are allowed in addresses and URLs, so that neither can become a header line
 * of a mail or an option of a program.
 */
#include "job/notify.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"

#define MAIL         "mail"
#define HOW_TO_WRITE "write mail, mail:ana@lab.example, https://host/path, or a command"

static int check_characters(const char *what, const char *text, const char *more, struct error *err)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (isalnum((unsigned char)*p) || strchr(more, *p) != NULL)
            continue;
        _cleanup_free_ char *shown = text_escape(text, 80);
        return error_set(err, -EINVAL, "notify: %s '%s' contains invalid byte 0x%02x", what, shown,
            (unsigned)(unsigned char)*p);
    }
    return 0;
}

static int check_address(const char *address, struct error *err)
{
    const char *at = strchr(address, '@');
    if (strlen(address) > NOTIFY_ADDRESS_MAX)
        return error_set(err, -E2BIG, "notify: a mail address has %zu bytes; at most %u", strlen(address),
            NOTIFY_ADDRESS_MAX);
    int r = check_characters("the mail address", address, ".!#$%&'*+/=?^_`{|}~-@", err);
    if (r < 0)
        return r;
    bool is_good = address[0] != '\0' && address[0] != '-' && at != address &&
                   (at == NULL || (at[1] != '\0' && strchr(at + 1, '@') == NULL));
    if (is_good)
        return 0;
    (void)error_set(err, -EINVAL, "notify: '%.60s' is not a mail address", address);
    return error_hint(err, "write mail:ana@lab.example, or mail for your own address");
}

static int check_url(const char *url, struct error *err)
{
    const char *host = strstr(url, "://") + 3;
    size_t scheme = (size_t)(host - 3 - url);
    bool is_known = (scheme == 4 && strncasecmp(url, "http", 4) == 0) ||
                    (scheme == 5 && strncasecmp(url, "https", 5) == 0);
    if (!is_known) {
        (void)error_set(err, -EINVAL, "notify: '%.60s' is not an http or https URL", url);
        return error_hint(err, HOW_TO_WRITE);
    }
    if (!isalnum((unsigned char)host[0]) && host[0] != '[')
        return error_set(err, -EINVAL, "notify: '%.60s' has no host", url);
    return check_characters("the URL", url, "-._~:/?#[]@!$&'()*+,;=%", err);
}

/* True for text such as "ftp://": a word and "://" at the beginning. */
static bool has_scheme(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return length > 0 && strncmp(text + length, "://", 3) == 0;
}

static int check_command(const char *text, struct error *err)
{
    if (strncmp(text, "mailto:", 7) == 0) {
        (void)error_set(err, -EINVAL, "notify: '%.60s' is not a command", text);
        return error_hint(err, "write mail:%.60s", text + 7);
    }
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return error_set(
                err, -EINVAL, "notify: the command contains a control character (byte 0x%02x)", (unsigned)*p);
    return 0;
}

int parse_notify(const char *text, struct notify_target *ret, struct error *err)
{
    size_t length = strlen(text);
    int r = 0;
    if (text[strspn(text, " \t")] == '\0') {
        (void)error_set(err, -EINVAL, "notify: a target is empty");
        return error_hint(err, HOW_TO_WRITE);
    }
    if (length > NOTIFY_TARGET_MAX)
        return error_set(
            err, -E2BIG, "notify: '%.40s...' has %zu bytes; at most %u", text, length, NOTIFY_TARGET_MAX);
    struct notify_target target = { .way = NOTIFY_COMMAND, .to = text };
    if (strcmp(text, MAIL) == 0)
        target = (struct notify_target){ .way = NOTIFY_MAIL };
    else if (strncmp(text, MAIL ":", strlen(MAIL ":")) == 0)
        target = (struct notify_target){ .way = NOTIFY_MAIL, .to = text + strlen(MAIL ":") };
    else if (has_scheme(text))
        target.way = NOTIFY_URL;
    if (target.way == NOTIFY_MAIL && target.to != NULL)
        r = check_address(target.to, err);
    else if (target.way == NOTIFY_URL)
        r = check_url(text, err);
    else if (target.way == NOTIFY_COMMAND)
        r = check_command(text, err);
    if (r == 0)
        *ret = target;
    return r;
}

static const struct {
    const char *name;
    enum notify_event event;
} events[] = {
    { "start", NOTIFY_START },
    { "end", NOTIFY_END },
    { "fail", NOTIFY_FAIL },
    { "requeue", NOTIFY_REQUEUE },
    { "preempt", NOTIFY_PREEMPT },
    { "park", NOTIFY_PARK },
    { "unpark", NOTIFY_UNPARK },
};
#define EVENTS (sizeof(events) / sizeof(events[0]))

const char *notify_event_name(enum notify_event event)
{
    for (size_t i = 0; i < EVENTS; i++)
        if (events[i].event == event)
            return events[i].name;
    return "invalid";
}

const char *notify_event_word(size_t i)
{
    return i < EVENTS ? events[i].name : NULL;
}

static uint32_t find_event(const char *word, size_t length)
{
    for (size_t i = 0; i < EVENTS; i++)
        if (strlen(events[i].name) == length && strncmp(events[i].name, word, length) == 0)
            return events[i].event;
    return 0;
}

static int hint_events(struct error *err)
{
    _cleanup_buffer_ struct buffer names = { 0 };
    for (size_t i = 0; i < EVENTS; i++)
        buffer_printf(&names, "%s%s", i == 0 ? "" : i + 1 < EVENTS ? ", " : " and ", events[i].name);
    return error_hint(err, "use %s, separated by commas", buffer_text(&names));
}

int parse_notify_on(const char *text, uint32_t *ret_events, struct error *err)
{
    uint32_t found = 0;
    for (const char *p = text, *end = p;; p = end + 1) {
        end = p + strcspn(p, ",");
        uint32_t event = find_event(p, (size_t)(end - p));
        if (event == 0) {
            (void)error_set(
                err, -EINVAL, "notify_on: '%.*s' is not an event", (int)(end - p < 60 ? end - p : 60), p);
            return hint_events(err);
        }
        found |= event;
        if (*end == '\0')
            break;
    }
    *ret_events = found;
    return 0;
}

uint32_t notify_events(const struct job_ask *ask)
{
    uint32_t wanted = NOTIFY_END;
    if (ask->notify.count == 0)
        return 0;
    if (ask->notify_on != NULL)
        (void)parse_notify_on(ask->notify_on, &wanted, NULL);
    return wanted;
}

int ask_check_notify(const struct job_ask *ask, struct error *err)
{
    struct notify_target target;
    uint32_t wanted = 0;
    int r = 0;
    if (ask->notify.count > NOTIFY_MAX)
        return error_set(err, -E2BIG, "notify has %zu targets; at most %u", ask->notify.count, NOTIFY_MAX);
    for (size_t i = 0; r == 0 && i < ask->notify.count; i++)
        r = parse_notify(ask->notify.items[i], &target, err);
    if (r == 0 && ask->notify_on != NULL)
        r = parse_notify_on(ask->notify_on, &wanted, err);
    if (r == 0 && ask->notify_on != NULL && ask->notify.count == 0) {
        (void)error_set(err, -EINVAL, "notify_on requires notify");
        r = error_hint(err, "add notify, such as --notify mail");
    }
    return r;
}
