"""JPEG through libjpeg-turbo: a region, at a scale, with an entropy decoder of our own."""

#: Why a build without the library cannot do something, and the remedy.
MISSING = (
    "recordio was built without libjpeg-turbo: install a wheel of recordio-iterators, or the "
    "headers of libjpeg-turbo (Debian: libjpeg62-turbo-dev, Fedora: libjpeg-turbo-devel, Homebrew: "
    "jpeg-turbo) and build again"
)
