"""Folders and files on disk: written whole or not at all, checked by a manifest, found here or on a hub."""
