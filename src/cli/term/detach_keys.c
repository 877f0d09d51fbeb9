/* SPDX-License-Identifier: MIT */
#include "cli/term/detach_keys.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define PREFIX_KEY 0x1dU // Ctrl-]
#define CTRL       "ctrl-"

/* The keys after the prefix. */
static const struct {
    char key;
    enum key_action action;
} menu[] = {
    { 'd', KEY_DETACH },
    { 'k', KEY_CANCEL },
    { 'l', KEY_LOG },
    { 's', KEY_STATUS },
    { '?', KEY_HELP },
};

/* In Docker's form: a character, or ctrl- and one of a-z @ [ \ ] ^ _ */
static int parse_key(const char *word, size_t length, uint8_t *ret, struct error *err)
{
    size_t prefix = strlen(CTRL);
    if (length == 1 && (unsigned char)word[0] < 0x80) {
        *ret = (uint8_t)word[0];
        return 0;
    }
    if (length == prefix + 1 && strncasecmp(word, CTRL, prefix) == 0) {
        int key = toupper((unsigned char)word[prefix]);
        if (key >= '@' && key <= '_') {
            *ret = (uint8_t)(key - '@');
            return 0;
        }
    }
    (void)error_set(
        err, -EINVAL, "--detach-keys: '%.*s' is not a key", (int)(length < 20 ? length : 20), word);
    return error_hint(err, "use keys such as ctrl-p,ctrl-q, or none");
}

int detach_keys_parse(struct detach_keys *keys, const char *text, struct error *err)
{
    struct detach_keys made = { 0 };
    if (text == NULL) {
        *keys = (struct detach_keys){ .sequence = { PREFIX_KEY }, .length = 1, .is_menu = true };
        return 0;
    }
    if (strcmp(text, "none") == 0) {
        *keys = made;
        return 0;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (made.length == DETACH_KEYS_MAX)
            return error_set(err, -E2BIG, "--detach-keys: more than %u keys", DETACH_KEYS_MAX);
        int r = parse_key(at, length, &made.sequence[made.length], err);
        if (r < 0)
            return r;
        made.length++;
        at += length;
        if (*at == '\0')
            break;
    }
    *keys = made;
    return 0;
}

void detach_keys_expire(struct detach_keys *keys, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length)
{
    memcpy(out, keys->sequence, keys->matched);
    *ret_length = keys->matched;
    keys->matched = 0;
}

static enum key_action choose(
    struct detach_keys *keys, uint8_t key, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length)
{
    *ret_length = 0;
    for (size_t i = 0; i < sizeof(menu) / sizeof(menu[0]); i++) {
        if ((uint8_t)menu[i].key == key) {
            keys->matched = 0;
            return menu[i].action;
        }
    }
    /* Typing the prefix twice sends the prefix. */
    if (key == keys->sequence[keys->length - 1])
        keys->matched = 0;
    else
        detach_keys_expire(keys, out, ret_length);
    out[(*ret_length)++] = key;
    return KEY_PASS;
}

enum key_action detach_keys_feed(
    struct detach_keys *keys, uint8_t key, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length)
{
    *ret_length = 0;
    if (keys->is_menu && keys->length > 0 && keys->matched == keys->length)
        return choose(keys, key, out, ret_length);
    if (keys->length > 0 && key == keys->sequence[keys->matched]) {
        keys->matched++;
        if (keys->matched < keys->length || keys->is_menu)
            return KEY_WAIT;
        keys->matched = 0;
        return KEY_DETACH;
    }
    detach_keys_expire(keys, out, ret_length);
    /* The key may begin the sequence again. */
    if (keys->length > 0 && *ret_length > 0 && key == keys->sequence[0]) {
        keys->matched = 1;
        return KEY_PASS;
    }
    out[(*ret_length)++] = key;
    return KEY_PASS;
}
