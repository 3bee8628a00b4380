from typing import Self

from .render import Renderer

class Mosaic:
    def __new__(cls, renderer: Renderer, first: int, count: int) -> Self: ...
