"""Validates every YAML file under ``data/`` and writes the generated JSON that the package carries.

``build_data.py`` writes ``data/schemas/*.schema.json``, one JSON a YAML file under ``src/enginemem/data/`` and the
digest over them. ``build_data.py --check`` writes nothing and exits 1, naming every file that is stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from enginemem.schema import (
    AssumptionsFile,
    EngineFile,
    HardwareFile,
    LogsFile,
    ModelsFile,
    WeightsFile,
    WorkedFile,
    merged_release,
)
from enginemem.schema.base import Json, StrictModel

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("data")
SCHEMAS = DATA / "schemas"
GENERATED = Path("src/enginemem/data")
_MIRRORED = ("models", "engines")
_FIRST_LINE = "# yaml-language-server: $schema="


class DataError(Exception):
    """A data file that is not what its schema asks for; the message names the file."""


class Kind(NamedTuple):
    """One kind of data file: the name of its schema and the model behind it."""

    name: str
    model: type[StrictModel]

    @property
    def schema(self) -> Path:
        """The schema file, relative to the repository."""
        return SCHEMAS / f"{self.name}.schema.json"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("hardware", HardwareFile),
        Kind("models", ModelsFile),
        Kind("engine", EngineFile),
        Kind("worked", WorkedFile),
        Kind("assumptions", AssumptionsFile),
        Kind("logs", LogsFile),
        Kind("weights", WeightsFile),
    )
}


class _Loader(yaml.SafeLoader):
    """YAML without its traps: no key twice, no bare floats."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of ``node``; raises DataError when a key stands there twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise DataError(f"line {node.start_mark.line + 1}: twice in one mapping: {', '.join(sorted(twice))}")
        return super().construct_mapping(node, deep=deep)


def _refuse_float(_: _Loader, node: yaml.ScalarNode) -> None:
    raise DataError(
        f"line {node.start_mark.line + 1}: a bare float, {node.value}: quote it, with its unit if it has one"
    )


_Loader.add_constructor("tag:yaml.org,2002:float", _refuse_float)


def data_files(root: Path) -> list[Path]:
    """The YAML files of the repository at ``root``, relative to it, sorted."""
    return sorted(path.relative_to(root) for path in (root / DATA).rglob("*.y*ml"))


def kind_of(path: Path) -> Kind:
    """The kind of a data file by its place (relative to the repository). Raises DataError where no file belongs."""
    match path.relative_to(DATA).parts:
        case ("hardware.yaml" | "worked.yaml" | "assumptions.yaml" | "logs.yaml" | "weights.yaml",):
            return KINDS[path.stem]
        case ("models", _) if path.suffix == ".yaml":
            return KINDS["models"]
        case ("engines", _, _) if path.suffix == ".yaml":
            return KINDS["engine"]
    raise DataError(f"{path}: no data file belongs here")


def schema_named_in(root: Path, path: Path) -> Path:
    """The schema that the first line of a data file names for editors, relative to the repository."""
    first = (root / path).read_text(encoding="utf-8").partition("\n")[0]
    if not first.startswith(_FIRST_LINE):
        raise DataError(f"{path}: the first line starts with {_FIRST_LINE!r}")
    named = (root / path.parent / first.removeprefix(_FIRST_LINE).strip()).resolve()
    return named.relative_to(root) if named.is_relative_to(root) else named


def load(root: Path, path: Path) -> StrictModel:
    """One data file, validated. Raises DataError that names the file and every fault."""
    kind = kind_of(path)
    if schema_named_in(root, path) != kind.schema:
        raise DataError(f"{path}: the first line names another schema than {kind.schema}")
    try:
        # The loader is a SafeLoader: it builds plain data only.
        facts = yaml.load((root / path).read_text(encoding="utf-8"), Loader=_Loader)
        return kind.model.model_validate(facts)
    except (DataError, yaml.YAMLError) as error:
        raise DataError(f"{path}: {error}") from error
    except ValidationError as error:
        faults = [f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise DataError("\n".join(faults)) from error


def _whole_releases(files: dict[Path, EngineFile]) -> dict[Path, EngineFile]:
    """Every release written out, whatever chain of releases it extends."""
    whole: dict[Path, EngineFile] = {}

    def resolve(path: Path, above: tuple[Path, ...]) -> EngineFile:
        file = files[path]
        if path in whole or file.extends is None:
            return whole.setdefault(path, file)
        base = path.with_name(f"{file.extends}.yaml")
        if base not in files or base in (*above, path):
            raise DataError(f"{path}: cannot extend {file.extends}: {'a circle' if base in files else 'no such file'}")
        try:
            whole[path] = merged_release(file, resolve(base, (*above, path)))
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error
        return whole[path]

    for path, file in files.items():
        if (file.engine, f"{file.release}.yaml") != (path.parent.name, path.name):
            raise DataError(f"{path}: holds {file.engine} {file.release}")
        resolve(path, ())
    return whole


def _json_bytes(facts: Json) -> bytes:
    return (json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _schema_bytes(kind: Kind) -> bytes:
    dialect: dict[str, Json] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return _json_bytes(dialect | kind.model.model_json_schema())


def build(root: Path = ROOT) -> dict[Path, bytes]:
    """Every generated file of the repository at ``root``: its path (relative) and its content.

    Raises DataError with every fault of every file.
    """
    loaded: dict[Path, StrictModel] = {}
    faults: list[str] = []
    for path in data_files(root):
        try:
            loaded[path] = load(root, path)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))

    engines = {path: file for path, file in loaded.items() if isinstance(file, EngineFile)}
    whole = _whole_releases(engines)
    facts: dict[Path, Json] = {}
    for path, file in loaded.items():
        if isinstance(file, EngineFile):
            facts[path] = whole[path].generated(extended=file.extends)
        elif isinstance(file, AssumptionsFile | HardwareFile | LogsFile | ModelsFile | WeightsFile | WorkedFile):
            facts[path] = file.generated()

    # Not with_suffix: a release file's name has dots of its own.
    generated = {
        GENERATED / path.relative_to(DATA).with_name(f"{path.name.removesuffix('.yaml')}.json"): _json_bytes(content)
        for path, content in facts.items()
    }
    digest = hashlib.sha256()
    for path in sorted(generated, key=Path.as_posix):
        digest.update(f"{path.relative_to(GENERATED).as_posix()}\0{len(generated[path])}\0".encode() + generated[path])
    names: list[Json] = [path.relative_to(GENERATED).as_posix() for path in sorted(generated)]
    generated[GENERATED / "digest.json"] = _json_bytes({"files": names, "sha256": digest.hexdigest()})
    return generated | {kind.schema: _schema_bytes(kind) for kind in KINDS.values()}


def stale_files(root: Path, generated: dict[Path, bytes]) -> list[Path]:
    """Generated files that are missing, out of date, or left over from a YAML file that is gone."""
    stale = [path for path, content in generated.items() if not _holds(root / path, content)]
    for room in _MIRRORED:
        there = {path.relative_to(root) for path in (root / GENERATED / room).rglob("*.json")}
        stale += sorted(there - generated.keys())
    return sorted(stale)


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def main(arguments: list[str] | None = None) -> int:
    """Command line. Returns the exit status: 0, or 1 when a file is stale or not valid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a generated file is stale")
    options = parser.parse_args(arguments)
    try:
        generated = build(ROOT)
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    stale = stale_files(ROOT, generated)
    if options.check:
        for path in stale:
            print(f"stale: {path}", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        target = ROOT / path
        if path in generated:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(generated[path])
        else:
            target.unlink()
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
