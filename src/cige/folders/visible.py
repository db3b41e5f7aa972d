"""The files of a folder that are meant to be read, in a fixed order."""

from pathlib import Path


def visible_files(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, sorted by path, without those whose name or folder is hidden.

    Names with "_" or "." first are hidden, as in Spark, which writes its own files there. A file has none.
    """
    if not folder.is_dir():
        return []
    files = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return sorted(folder / file for file in files if not any(part.startswith(("_", ".")) for part in file.parts))
