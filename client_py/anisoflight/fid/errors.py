"""What this package refuses, with a stable code."""

from ..errors import AnisoflightError


class FidError(AnisoflightError, ValueError):
    """Images, a reference, a feature network or a request that cannot be measured; the message says which and why.

    Codes: TOO_FEW, BAD_IMAGES, BAD_FEATURES, BAD_REFERENCE, BAD_REQUEST, BAD_SHARD, FLEET, NEEDS_PACKAGE.
    """


def needs(package: str, purpose: str) -> FidError:
    """The error of a package that is not installed."""
    return FidError(f"{purpose} needs the package {package}: pip install {package}", "NEEDS_PACKAGE")
