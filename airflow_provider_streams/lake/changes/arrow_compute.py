"""Arrow's functions of columns and arrays, without their stubs, which know few of our calls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as arrow_functions

pc: Any = arrow_functions
array: Any = pa.array
"""Also of numpy's arrays, which the stubs take for arrays of booleans."""
