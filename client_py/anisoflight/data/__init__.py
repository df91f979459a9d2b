"""Data sets of images: read in many formats, inspected, and converted to a server's data sets or EDM's zips.

    from anisoflight.data import Conversion, open_source, upload

    with open_source("downloads/afhqv2", labels="folder") as source:
        upload(client, "afhqv2", Conversion(source, size=(64, 64)))

``python -m anisoflight.data`` is the command; docs/data.md lists the formats. Images are read one after the other,
never all at once. Begin with `opening`; formats are the modules `folders`, `arrays`, `cifar` and `tables`.
"""

from .conversion import Conversion
from .inspection import inspect
from .opening import open_source
from .source import DataError, Item, Source
from .targets import upload, write_folder, write_zip
from .transforms import TRANSFORMS

__all__ = [
    "TRANSFORMS", "Conversion", "DataError", "Item", "Source", "inspect", "open_source", "upload", "write_folder",
    "write_zip",
]  # fmt: skip
