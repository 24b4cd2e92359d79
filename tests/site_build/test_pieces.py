"""The pieces of the site's build, each on small inputs."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest
from scripts.site import assets, budget, csp, packs, runtime, wheels
from scripts.site.inline import with_inline
from scripts.site.runtime import BuildError
from scripts.site.service_worker import release_id

ROOT = Path(__file__).resolve().parents[2]
HEAD = '<html><head><meta charset="utf-8">'


def hash_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_a_pack_holds_its_files_and_is_the_same_for_the_same_files() -> None:
    files = {"/lib/b.pyc": b"two\n", "/lib/a.pyc": b"\x00one"}
    index, _, body = gzip.decompress(packs.packed(files)).partition(b"\n")
    assert json.loads(index) == [["/lib/a.pyc", 4], ["/lib/b.pyc", 4]]
    assert body == b"\x00onetwo\n"
    assert packs.packed(dict(reversed(files.items()))) == packs.packed(files)


def test_a_file_that_is_not_the_pinned_one_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"changed")
    (tmp_path / "hashes").write_text(f"{hashlib.sha256(b'pinned').hexdigest()}  a\n", "utf-8")
    with pytest.raises(BuildError, match="not the file"):
        runtime.verified(tmp_path, tmp_path / "hashes")
    (tmp_path / "a").write_bytes(b"pinned")
    assert runtime.verified(tmp_path, tmp_path / "hashes") == {"a": b"pinned"}


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_an_overlay_takes_a_modules_place_and_keeps_it_at_hand(tmp_path: Path) -> None:
    (tmp_path / "socket.py").write_bytes(b"ours")
    with zipfile.ZipFile(
        io.BytesIO(runtime.with_overlays(zipped({"socket.py": b"whole", "os.py": b"os"}), tmp_path))
    ) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "os.py": b"os", "socket.py": b"ours", "socket_whole.py": b"whole",
        }  # fmt: skip
    with pytest.raises(BuildError, match="has no socket"):
        runtime.with_overlays(zipped({"os.py": b"os"}), tmp_path)


def test_a_wheel_counts_by_name_version_and_content(tmp_path: Path) -> None:
    pin = wheels.Pin("pydantic-core", "2.50.5", hashlib.sha256(b"wheel").hexdigest())
    (tmp_path / "pydantic_core-0.0.1-py3-none-any.whl").write_bytes(b"wheel")
    (tmp_path / "pydantic_core-2.50.5-py3-none-any.whl").write_bytes(b"a stub")
    assert pin.file_in(tmp_path) is None
    right = tmp_path / "pydantic_core-2.50.5-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
    right.write_bytes(b"wheel")
    assert pin.file_in(tmp_path) == right


def test_the_lock_of_the_browsers_wheels_is_read_whole() -> None:
    assert [pin.name for pin in wheels.pins(ROOT)][-2:] == ["pydantic", "micropip"]


def test_the_policy_names_inline_scripts_and_styles_by_hash_and_leaves_data_alone() -> None:
    code = 'go("&amp;")'
    html = f'{HEAD}<style>a{{}}</style><script>{code}</script><script type="application/json">{{}}</script>'
    policy = csp.policy(html)
    assert f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{hash_of(code)}';" in policy
    assert f"style-src 'self' 'sha256-{hash_of('a{}')}';" in policy
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy


@pytest.mark.parametrize("html", ['<p onclick="x()">', '<p style="color: red">', '<a href="javascript:x()">'])
def test_what_a_policy_would_have_to_be_unsafe_for_stops_the_build(html: str) -> None:
    with pytest.raises(BuildError, match="forbids"):
        csp.with_policy(HEAD + html)


def test_the_policy_comes_before_all_that_it_governs() -> None:
    html = csp.with_policy(f"{HEAD}<script>x</script>")
    assert html.startswith(f'{HEAD}<meta http-equiv="Content-Security-Policy"')
    assert '<meta name="referrer" content="no-referrer">' in html


def test_modules_are_announced_with_all_that_they_import(tmp_path: Path) -> None:
    app = tmp_path / "assets/app/0"
    app.mkdir(parents=True)
    (app / "app.js").write_text(
        'import { a } from "./client.js";\nimport "./side.js";\nconst x = import("./later.js");\n'
    )
    (app / "client.js").write_text('import {\n  b,\n} from "./release.js";\n')
    for name in ("side", "release", "later", "start"):
        (app / f"{name}.js").write_text("")
    assert assets.imported_scripts(app, "app.js") == ["client.js", "side.js", "release.js"]
    page = '<head></head><script type="module" src="../assets/site/app.js"></script>'
    sealed = assets.sealed_page(page, tmp_path, "assets/app/0")
    assert "assets/site" not in sealed
    assert '<script type="module" async src="../assets/app/0/start.js"></script>' in sealed
    assert sealed.count("modulepreload") == 5


def test_small_style_sheets_and_head_scripts_stand_in_line(tmp_path: Path) -> None:
    (tmp_path / "small.css").write_text("a{}\n")
    (tmp_path / "large.css").write_text("a{}" * 10_000)
    (tmp_path / "early.js").write_text("go();\n")
    large = '<link rel="stylesheet" href="large.css">'
    script = '<script src="early.js"></script>'
    html = f'<link rel="stylesheet" href="small.css">{large}{script}</head>{script}'
    shown = with_inline(html, tmp_path, tmp_path / "index.html")
    assert shown == f"<style>a{{}}</style>{large}<script>go();</script></head>{script}"


def test_a_style_sheet_that_names_files_may_not_stand_in_line(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a{background:url(x.png)}")
    with pytest.raises(BuildError, match="cannot stand in line"):
        with_inline('<link rel="stylesheet" href="a.css"></head>', tmp_path, tmp_path / "index.html")


def visit(usual: int, squeezed: int) -> budget.Visit:
    return budget.Visit((budget.Weight("a.wasm", 2 * usual, usual, squeezed),))


def test_a_first_visit_over_either_budget_stops_the_build() -> None:
    budget.enforce(visit(5_000_000, 4_200_000))
    with pytest.raises(BuildError, match="5,000,001"):
        budget.enforce(visit(5_000_001, 1))
    with pytest.raises(BuildError, match="4,200,001"):
        budget.enforce(visit(5_000_000, 4_200_001))


def test_only_scripts_and_wasm_count_compressed_at_a_usual_host() -> None:
    assert budget.Weight("a.html", 100, 10, 9).usual == 100
    assert budget.Weight("a.js", 100, 10, 9).usual == 10


def test_a_releases_id_stands_for_its_files() -> None:
    assert release_id({"a": "1", "b": "2"}) == release_id({"b": "2", "a": "1"}) != release_id({"a": "1", "b": "3"})
