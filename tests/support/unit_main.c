/* SPDX-License-Identifier: MIT */
/* The main() of programs that only have tests: the linker takes it from its library if there is no other. */
#include "unit_test.h"

int main(void)
{
    return unit_tests_run(NULL, NULL);
}
