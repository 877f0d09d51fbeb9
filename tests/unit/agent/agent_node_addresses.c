/* SPDX-License-Identifier: MIT */
/* The controllers that a node dials. */

#include <errno.h>

#include "agent/host/node_addresses.h"
#include "base/buffer.h"
#include "unit_test.h"

TEST(each_controller_is_dialled_once)
{
    static const struct {
        const char *learnt, *given, *all;
    } rows[] = {
        { NULL, "gpu0", "gpu0:9124" },
        { "a:9124,b:9124", "b", "a:9124 b:9124" },
        { "A:9124", "a,c", "A:9124 c:9124" },
        { "10.0.0.12:9124", "10.0.0.1:9124", "10.0.0.12:9124 10.0.0.1:9124" },
        { "10.0.0.12:9124", "10.0.0.1", "10.0.0.12:9124 10.0.0.1:9124" },
        { "a:9124", "a:912", "a:9124 a:912" },
        { "[fd00::71]:9124", "[fd00::7]", "[fd00::71]:9124 [fd00::7]:9124" },
        { "a", "a,a,b", "a:9124 b:9124" },
        { "a,b,c,d,e,f,g,h", "i,j", "a:9124 b:9124 c:9124 d:9124 e:9124 f:9124 g:9124 h:9124 i:9124" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address addresses[ADDRESSES_MAX];
        size_t count = 0;
        _cleanup_buffer_ struct buffer all = { 0 };
        assert_int_equal(node_addresses_join(rows[i].learnt, rows[i].given, addresses, &count, NULL), 0);
        for (size_t k = 0; k < count; k++) {
            _cleanup_free_ char *text = address_text(&addresses[k]);
            buffer_printf(&all, "%s%s", k > 0 ? " " : "", text);
        }
        assert_string_equal(buffer_text(&all), rows[i].all);
        address_clear_list(addresses, count);
    }
}

TEST(what_is_no_list_changes_nothing)
{
    struct address addresses[ADDRESSES_MAX];
    size_t count = 77;
    struct error err = { 0 };
    assert_int_equal(node_addresses_join("a,b:x", "c", addresses, &count, &err), -EINVAL);
    assert_int_equal(node_addresses_join("a,b", "c:x", addresses, &count, &err), -EINVAL);
    assert_string_equal(err.message, "'c:x' is not HOST:PORT");
    assert_int_equal(count, 77);
}
