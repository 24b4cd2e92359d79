"""The generated JSON is what the YAML says, and nothing else lies beside it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_data", ROOT / "scripts/build_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_data = _load_build()
GENERATED: dict[Path, bytes] = build_data.build(ROOT)


def carried(name: str) -> Any:
    return json.loads(GENERATED[Path("src/enginemem/data") / name])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    return tmp_path.resolve()


def test_nothing_generated_is_stale() -> None:
    assert build_data.stale_files(ROOT, GENERATED) == []


@pytest.mark.parametrize("path", build_data.data_files(ROOT), ids=str)
def test_the_first_line_names_an_existing_schema(path: Path) -> None:
    assert (ROOT / build_data.schema_named_in(ROOT, path)).is_file()


def test_every_yaml_file_has_its_json() -> None:
    expected = {
        Path("src/enginemem/data") / path.relative_to("data").parent / (path.name.removesuffix(".yaml") + ".json")
        for path in build_data.data_files(ROOT)
    }
    assert expected <= GENERATED.keys()


def test_generated_files_are_sorted_and_hold_no_float() -> None:
    def refuse(text: str) -> float:
        raise AssertionError(f"a float: {text}")

    for path, content in GENERATED.items():
        facts = json.loads(content, parse_float=refuse)
        assert content.endswith(b"}\n"), path
        assert content.decode() == json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_a_total_that_is_no_whole_number_of_bytes_stays_exact() -> None:
    total = carried("hardware.json")["parts"]["h100-sxm"]["cuda_total"]
    assert total["text"] == "79.18 GiB"
    assert Fraction(total["value"]) == Fraction("79.18") * 2**30
    assert total["value"] == "2125471940608/25"


def test_whole_numbers_are_integers_and_unknown_values_null() -> None:
    parts = carried("hardware.json")["parts"]
    assert parts["h100-sxm"]["nvidia_smi_total"]["value"] == 81_559 * 2**20
    assert parts["h100-sxm"]["bf16_dense"]["value"] == 989_400_000_000_000
    assert parts["h100-sxm"]["memory_bandwidth"]["value"] == 3_350_000_000_000
    assert parts["h100-sxm"]["cuda_total"]["checked"] == "2026-11-30"
    assert parts["gb300"]["cuda_total"]["value"] is None
    assert parts["l4"]["fp4_dense"]["value"] is None


def test_the_digest_moves_with_the_data(copy: Path) -> None:
    path = copy / "data/hardware.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("81,559 MiB", "81,558 MiB"), encoding="utf-8")
    changed = build_data.build(copy)
    digest = Path("src/enginemem/data/digest.json")
    assert changed[digest] != GENERATED[digest]
    assert len(json.loads(changed[digest])["sha256"]) == 64


def test_a_changed_or_left_over_file_is_named_as_stale(copy: Path) -> None:
    for path, content in GENERATED.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(content)
    assert build_data.stale_files(copy, GENERATED) == []
    changed, left_over = Path("src/enginemem/data/hardware.json"), Path("src/enginemem/data/models/gone.json")
    (copy / changed).write_text("{}\n")
    (copy / left_over).write_text("{}\n")
    assert build_data.stale_files(copy, GENERATED) == [changed, left_over]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("checked: 2026-11-30\n", "checked: 2026-11-30\nchecked: 2026-11-29\n", "twice in one mapping: checked"),
        ('smi_over_cuda_bound: "1.05"', "smi_over_cuda_bound: 1.05", "a bare float, 1.05"),
        ("hardware.schema.json", "models.schema.json", "names another schema"),
        ("# yaml-language-server", "# editors", "the first line starts with"),
        ('value: "81,559 MiB"', "value: 81559", "nvidia_smi_total.value: Input should be a valid string"),
        ("vendor: AMD", "vendor: Other", "parts.mi300x.vendor"),
    ],
)
def test_a_fault_is_named_with_its_file(copy: Path, old: str, new: str, message: str) -> None:
    path = copy / "data/hardware.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(build_data.DataError, match=r"data.hardware\.yaml: ") as caught:
        build_data.build(copy)
    assert message in str(caught.value)


def test_a_file_where_none_belongs_is_refused(copy: Path) -> None:
    (copy / "data/notes.yaml").write_text("a: 1\n")
    with pytest.raises(build_data.DataError, match=r"notes\.yaml: no data file belongs here"):
        build_data.build(copy)
