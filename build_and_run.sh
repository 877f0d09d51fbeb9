#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds everything into dist/ and shows it at work, as the small scheduler of that name did.
set -e
cd "$(dirname "$0")"
make build
exec examples/demo dist
