"""Strict schemas of the YAML files under ``data/``, and the JSON that the package carries instead of them.

Only the build, the tests and the check of a record that a user brings import this package: it needs pydantic, the
rest of the core does not.
"""

from enginemem.schema.assumptions import AssumptionsFile
from enginemem.schema.base import StrictModel
from enginemem.schema.engines import EngineFile, merged_release
from enginemem.schema.hardware import HardwareFile
from enginemem.schema.logs import LogsFile
from enginemem.schema.models import ModelsFile
from enginemem.schema.weights import WeightsFile
from enginemem.schema.worked import WorkedFile

__all__ = [
    "AssumptionsFile",
    "EngineFile",
    "HardwareFile",
    "LogsFile",
    "ModelsFile",
    "StrictModel",
    "WeightsFile",
    "WorkedFile",
    "merged_release",
]
