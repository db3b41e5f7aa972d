"""The size and the sha256 of what a folder holds."""

from __future__ import annotations

from pathlib import Path

from cige.folders.manifest import entry_of, sha256, update_manifest, write_manifest


def test_the_entry_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "folder" / "part" / "a.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1")
    assert entry_of(file) == {"bytes": 1, "sha256": sha256(file)}
    plain = entry_of(folder)
    assert plain["bytes"] == 1
    write_manifest(folder, kind="words")
    assert entry_of(folder) == plain
    update_manifest(folder, date="2026")
    assert entry_of(folder) == plain
    file.write_bytes(b"2")
    assert entry_of(folder) == plain  # the manifest says what belongs to the folder; loading it finds the damage
    write_manifest(folder, kind="words")
    assert entry_of(folder) != plain
    (folder / "manifest.json").write_text('{"files": {"part/a.txt": {"bytes": "2", "sha256": ""}}}', encoding="utf-8")
    assert entry_of(folder)["bytes"] > 2  # damaged: a file as any other
