"""Floor 2: Pylearn2's spaces and data_specs, over the layouts of `core`; never a batch's source."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
