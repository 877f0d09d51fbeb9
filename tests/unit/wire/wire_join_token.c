/* SPDX-License-Identifier: MIT */
/* What people copy from one machine to another: tokens, pins, addresses, names, versions. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"
#include "unit_test.h"
#include "wire/message.h"
#include "wire/node_name.h"
#include "wire/tls/join_token.h"

static struct join_token make_token(void)
{
    struct join_token token = { .id = 0x0102030405060708 };
    for (unsigned i = 0; i < JOIN_SECRET_SIZE; i++)
        token.secret[i] = (uint8_t)(200 + i);
    for (unsigned i = 0; i < TLS_PIN_SIZE; i++)
        token.pin[i] = (uint8_t)(i * 7);
    return token;
}

TEST(a_token_is_read_back)
{
    struct join_token token = make_token(), again = { 0 };
    char text[JOIN_TOKEN_TEXT_SIZE];
    struct error err = { 0 };
    join_token_write(&token, text);
    assert_int_equal(strlen(text), JOIN_TOKEN_TEXT_SIZE - 1);
    assert_int_equal(
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), strlen(text));
    assert_int_equal(join_token_read(text, &again, &err), 0);
    assert_memory_equal(&again, &token, sizeof(token));
}

TEST(what_is_no_token_is_told_apart)
{
    struct join_token token = make_token(), again;
    char text[JOIN_TOKEN_TEXT_SIZE];
    struct error err = { 0 };
    join_token_write(&token, text);
    char kept = text[40];
    text[40] = '*';
    assert_int_equal(join_token_read(text, &again, &err), -EINVAL);
    assert_non_null(strstr(err.message, "invalid characters"));
    text[40] = kept;
    text[1] = 'g'; // another version
    assert_int_equal(join_token_read(text, &again, &err), -EPROTONOSUPPORT);
    text[JOIN_TOKEN_TEXT_SIZE - 2] = '\0';
    assert_int_equal(join_token_read(text, &again, &err), -EINVAL);
    assert_non_null(strstr(err.message, "incomplete"));
    assert_int_equal(join_token_read("", &again, &err), -EINVAL);
}

TEST(a_ticket_has_an_address_and_a_token)
{
    struct join_token token = make_token();
    struct join_ticket ticket;
    struct error err = { 0 };
    char text[JOIN_TOKEN_TEXT_SIZE];
    join_token_write(&token, text);
    _cleanup_free_ char *whole = xasprintf("[fd00::7]:9200#%s", text), *bare = xasprintf("gpu0#%s", text);
    assert_int_equal(join_ticket_read(whole, &ticket, &err), 0);
    assert_string_equal(ticket.address.host, "fd00::7");
    assert_string_equal(ticket.address.port, "9200");
    join_ticket_clear(&ticket);
    assert_int_equal(join_ticket_read(bare, &ticket, &err), 0);
    assert_string_equal(ticket.address.port, NODES_PORT);
    join_ticket_clear(&ticket);
    _cleanup_free_ char *several = xasprintf("a:9124,b,[fd00::7]:9200#%s", text);
    _cleanup_free_ char *gap = xasprintf("a:9124,,b#%s", text);
    assert_int_equal(join_ticket_read(several, &ticket, &err), 0);
    assert_string_equal(ticket.address.host, "a");
    assert_string_equal(ticket.all, "a:9124,b,[fd00::7]:9200");
    join_ticket_clear(&ticket);
    assert_int_equal(join_ticket_read(gap, &ticket, &err), -EINVAL);
    assert_int_equal(join_ticket_read("gpu0:9124", &ticket, &err), -EINVAL);
    assert_non_null(strstr(err.hint, "quote it"));
}

TEST(pins_are_read_back_and_nothing_else_is)
{
    uint8_t pin[TLS_PIN_SIZE], again[TLS_PIN_SIZE];
    char text[TLS_PIN_TEXT_SIZE];
    for (unsigned i = 0; i < TLS_PIN_SIZE; i++)
        pin[i] = (uint8_t)(255 - i);
    tls_pin_text(pin, text);
    assert_int_equal(strlen(text), TLS_PIN_TEXT_SIZE - 1);
    assert_true(tls_pin_parse(text, again));
    assert_memory_equal(pin, again, sizeof(pin));
    text[42] = '_'; // bits beyond the last byte
    assert_false(tls_pin_parse(text, again));
    text[42] = '\0';
    assert_false(tls_pin_parse(text, again));
}

TEST(an_api_elsewhere_needs_its_pin)
{
    uint8_t pin[TLS_PIN_SIZE] = { 0 };
    char text[TLS_PIN_TEXT_SIZE];
    struct address address = { 0 };
    struct error err = { 0 };
    tls_pin_text(pin, text);
    _cleanup_free_ char *good = xasprintf("https://gpu0#%s", text),
                        *plain = xasprintf("http://gpu0#%s", text);
    assert_int_equal(pinned_address_read(good, &address, pin, &err), 0);
    assert_string_equal(address.port, API_PORT);
    address_clear(&address);
    assert_int_equal(pinned_address_read(plain, &address, pin, &err), -EINVAL);
    assert_int_equal(pinned_address_read("https://gpu0:9123", &address, pin, &err), -EINVAL);
}

TEST(addresses_are_read_as_people_write_them)
{
    static const struct {
        const char *text, *host, *port; // NULL: refused
    } rows[] = {
        { "gpu0:9124", "gpu0", "9124" },
        { "10.0.0.7:1", "10.0.0.7", "1" },
        { "[::1]:80", "::1", "80" },
        { "[::1]", "::1", "9124" },
        { "gpu0", "gpu0", "9124" },
        { "::1", NULL, NULL },
        { "gpu0:", NULL, NULL },
        { ":9124", NULL, NULL },
        { "gpu0:0", NULL, NULL },
        { "gpu0:65536", NULL, NULL },
        { "gpu0:ssh", NULL, NULL },
        { "[::1", NULL, NULL },
        { "[::1]x", NULL, NULL },
        { "[[::1]:80", NULL, NULL },
        { "a b:80", NULL, NULL },
        { "", NULL, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address address = { 0 };
        struct error err = { 0 };
        int r = address_parse(rows[i].text, NODES_PORT, &address, &err);
        assert_int_equal(r, rows[i].host == NULL ? -EINVAL : 0);
        if (r == 0) {
            assert_string_equal(address.host, rows[i].host);
            assert_string_equal(address.port, rows[i].port);
        }
        address_clear(&address);
    }
}

TEST(only_loopback_is_loopback)
{
    static const struct {
        const char *listen;
        bool is_loopback;
    } rows[] = { { "127.0.0.1:9123", true }, { "127.8.9.1:1", true }, { "localhost:9123", true },
        { "[::1]:9123", true }, { "0.0.0.0:9123", false }, { "[::]:9123", false }, { "gpu0:9123", false },
        { "10.0.0.1:9123", false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(address_is_loopback(rows[i].listen), rows[i].is_loopback);
}

TEST(names_become_no_paths)
{
    static const char *const good[] = { "gpu1", "a", "node-7.example.org", "A_b" };
    static const char *const bad[] = { "", "..", ".hidden", "a/b", "a b", "a\n", "n\xc3\xb6",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    struct error err = { 0 };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(node_name_check(good[i], &err), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(node_name_check(bad[i], &err), -EINVAL);
}

/* Of the version that is so many minor and major ones from ours. */
static int check_version(int major, int minor, struct error *err)
{
    char *end, text[32];
    long our_major = strtol(MGPU_VERSION, &end, 10), our_minor = strtol(end + 1, NULL, 10);
    (void)snprintf(text, sizeof(text), "%ld.%ld.7", our_major + major, our_minor + minor);
    return node_version_check(LINK_PROTOCOL, text, "node a", err);
}

TEST(one_minor_version_apart_works_together)
{
    struct error err = { 0 };
    assert_int_equal(node_version_check(LINK_PROTOCOL, MGPU_VERSION, "node a", &err), 0);
    assert_int_equal(check_version(0, 1, &err), 0);
    assert_int_equal(check_version(0, -1, &err), 0);
    assert_int_equal(check_version(0, 2, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.message, "node a has mgpu "));
    assert_non_null(strstr(err.hint, "update the older one"));
    assert_int_equal(check_version(1, 0, &err), -EPROTONOSUPPORT);
    assert_int_equal(node_version_check(LINK_PROTOCOL + 1, MGPU_VERSION, "node a", &err), -EPROTONOSUPPORT);
    assert_int_equal(node_version_check(LINK_PROTOCOL, NULL, "node a", &err), -EPROTONOSUPPORT);
    assert_int_equal(node_version_check(LINK_PROTOCOL, "new", "node a", &err), -EPROTONOSUPPORT);
}
