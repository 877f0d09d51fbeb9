/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/api/loopback.h"
#include "unit_test.h"
#include "wire/listener_owner.h"

/* A listener at this address; the kernel chooses the port. */
static int listen_at(struct sockaddr_in *address)
{
    socklen_t size = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port
    };
}

static char *url_of(const struct sockaddr_in *address)
{
    return xasprintf("http://127.0.0.1:%u", (unsigned)ntohs(address->sin_port));
}

TEST(the_owner_of_a_listener_is_reported)
{
    struct sockaddr_in address = loopback(0);
    uint32_t uid = UINT32_MAX;
    _cleanup_close_ int fd = listen_at(&address);
    assert_true(fd >= 0);
    if (!listener_owner((struct sockaddr *)&address, &uid))
        skip(); // a kernel that does not tell
    assert_int_equal(uid, geteuid());
}

TEST(a_listener_at_all_addresses_is_found_too)
{
    struct sockaddr_in all = { .sin_family = AF_INET };
    uint32_t uid = UINT32_MAX;
    _cleanup_close_ int fd = listen_at(&all);
    assert_true(fd >= 0);
    struct sockaddr_in address = loopback(all.sin_port);
    if (!listener_owner((struct sockaddr *)&address, &uid))
        skip();
    assert_int_equal(uid, geteuid());
}

TEST(without_a_listener_there_is_no_owner)
{
    struct sockaddr_in address = loopback(0), elsewhere = loopback(htons(80));
    uint32_t uid = 7;
    _cleanup_close_ int fd = listen_at(&address);
    assert_true(fd >= 0);
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
    assert_false(listener_owner((struct sockaddr *)&address, &uid));
    elsewhere.sin_addr.s_addr = htonl(0x0a000001); // 10.0.0.1
    assert_false(listener_owner((struct sockaddr *)&elsewhere, &uid));
    assert_false(listener_is_loopback((struct sockaddr *)&elsewhere));
    assert_int_equal(uid, 7);
}

TEST(a_connection_names_whom_it_is_with)
{
    struct sockaddr_in address = loopback(0);
    struct http_client *http = NULL;
    struct error err = { 0 };
    uid_t uid = (uid_t)-1;
    _cleanup_close_ int fd = listen_at(&address);
    assert_true(fd >= 0);
    _cleanup_free_ char *url = url_of(&address);
    int r = loopback_connect(url, 1000, &http, &uid, &err);
    if (r == -EPERM)
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(uid, geteuid());
    http_client_free(http);
}

TEST(a_missing_listener_is_reported)
{
    struct sockaddr_in address = loopback(0);
    struct http_client *http = NULL;
    struct error err = { 0 };
    uid_t uid;
    (void)close(listen_at(&address));
    _cleanup_free_ char *url = url_of(&address);
    assert_int_equal(loopback_connect(url, 1000, &http, &uid, &err), -EHOSTDOWN);
    assert_non_null(strstr(err.message, url));
    assert_non_null(strstr(err.message, "Connection refused"));
    assert_null(http);
}

TEST(other_machines_and_other_texts_are_refused)
{
    static const char *const wrong[] = { "http://", "http://:80", "http://localhost",
        "http://localhost:", "http://localhost:80/path", "http://10.0.0.1:80", "http://localhost:port",
        "http://a@b@c:1", "http://[::1:80" };
    struct http_client *http = NULL;
    uid_t uid;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error err = { 0 };
        assert_int_equal(loopback_connect(wrong[i], 100, &http, &uid, &err), -EINVAL);
        assert_true(err.message[0] != '\0');
        assert_null(http);
    }
    assert_true(loopback_is("127.0.0.1") && loopback_is("::1"));
    assert_false(loopback_is("10.0.0.1") || loopback_is("no such name"));
}
