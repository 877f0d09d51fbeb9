# SPDX-License-Identifier: MIT
"""The job's side of mgpu.Executor: python .../mgpu/_call.py FILE."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import Any, Tuple

try:
    import cloudpickle as pickler  # type: ignore[import]
except ImportError:
    pickler = pickle


def _run(path: str) -> Tuple[bool, Any]:
    try:
        with open(path, 'rb') as source:
            sys.path[:] = pickle.load(source)  # the caller's: the function is found through them
            function, arguments, keywords = pickle.load(source)
    except Exception as error:  # noqa: BLE001 - the caller is told
        return False, error
    try:
        return True, function(*arguments, **keywords)
    except BaseException as error:  # noqa: BLE001 - the caller gets it
        traceback.print_exc()
        return False, error


def main() -> int:
    path = sys.argv[1]
    result = _run(path)
    try:
        text = pickler.dumps(result)
    except Exception as error:  # noqa: BLE001 - a result that cannot be sent
        text = pickle.dumps((False, TypeError(f'the result cannot be pickled: {error}')))
    with open(f'{path}.new', 'wb') as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    os.rename(f'{path}.new', f'{path}.result')
    return 0 if result[0] else 1


if __name__ == '__main__':
    sys.exit(main())
