"""JPEG through libjpeg-turbo: a region, at a scale, with an entropy decoder of our own."""

#: Packages to install before compiling, where libjpeg-turbo is missing.
HEADERS = "Debian: libjpeg62-turbo-dev, Fedora: libjpeg-turbo-devel, Homebrew: jpeg-turbo"
