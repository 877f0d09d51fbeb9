# SPDX-License-Identifier: MIT
"""The version of the module: that of mgpu."""

__version__ = '0.2.0'
