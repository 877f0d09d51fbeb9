# SPDX-License-Identifier: MIT
"""See the package."""

from numpy import abs, max, mean  # noqa: A004, F401
