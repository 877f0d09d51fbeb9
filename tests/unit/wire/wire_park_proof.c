/* SPDX-License-Identifier: MIT */
#include "unit_test.h"
#include "wire/park_proof.h"

#define GIB (UINT64_C(1) << 30)

TEST(a_save_takes_a_start_and_a_time_for_each_byte)
{
    const struct park_proof proof = { .least_bytes = GIB,
        .least_save_ms = 1000,
        .least_load_ms = 500,
        .most_bytes = 41 * GIB,
        .most_save_ms = 21000,
        .most_load_ms = 8500 };
    assert_int_equal(park_proof_save_ms(&proof, 0), 500);
    assert_int_equal(park_proof_save_ms(&proof, GIB), 1000);
    assert_int_equal(park_proof_save_ms(&proof, 21 * GIB), 11000);
    assert_int_equal(park_proof_save_ms(&proof, 141 * GIB), 71000);
    assert_int_equal(park_proof_load_ms(&proof, 41 * GIB), 8500);
    assert_true(park_proof_save_rate(&proof) > 2.0e9 && park_proof_save_rate(&proof) < 2.2e9);
}

TEST(figures_that_are_on_no_line_still_give_a_time)
{
    const struct park_proof none = { 0 };
    const struct park_proof one = {
        .least_bytes = GIB, .least_save_ms = 600, .most_bytes = GIB, .most_save_ms = 600
    };
    const struct park_proof falling = {
        .least_bytes = GIB, .least_save_ms = 900, .most_bytes = 8 * GIB, .most_save_ms = 800
    };
    const struct park_proof steep = {
        .least_bytes = 8 * GIB, .least_save_ms = 10, .most_bytes = 9 * GIB, .most_save_ms = 20000
    };
    assert_int_equal(park_proof_save_ms(&none, GIB), 0);
    assert_true(park_proof_save_rate(&none) == 0);
    assert_int_equal(park_proof_save_ms(&one, 2 * GIB), 1200);
    assert_int_equal(park_proof_save_ms(&falling, 16 * GIB), 1600);
    assert_int_equal(park_proof_save_ms(&steep, GIB), 0); // and not less
}

TEST(each_place_of_return_is_found_by_its_name)
{
    for (enum park_elsewhere i = 0; i < PARK_ELSEWHERES; i++)
        assert_int_equal(park_elsewhere_find(park_elsewhere_name(i)), i);
    assert_int_equal(park_elsewhere_find("perhaps"), PARK_ELSEWHERES);
    assert_int_equal(park_elsewhere_find(NULL), PARK_ELSEWHERES);
}
