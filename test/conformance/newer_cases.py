"""All cases of newer_ops_test.py by name."""
import cases_image
import cases_nn
import cases_shape
from case_tools import ALL

__all__ = ["ALL", "cases_image", "cases_nn", "cases_shape"]
