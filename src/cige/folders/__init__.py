"""Folders and files: atomic writing, manifests with checksums, and model folders on disk or on the hub."""
