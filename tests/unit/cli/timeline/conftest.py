"""The oracle's zone data come from the same package as the product's, not from the machine."""

from __future__ import annotations

import whenever

whenever.reset_tzpath(())
