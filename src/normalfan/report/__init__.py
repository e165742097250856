"""A priced stream as one page that works offline, and slices of the fan.

Every name is imported when it is first used; `__init__.pyi` says from where.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
