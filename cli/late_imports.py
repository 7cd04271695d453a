"""Delays the import of large packages until one of their names is used."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any

# Importing any of these packages would import hundreds of modules.
_PACKAGES = frozenset(
    {
        "langchain_openai",
        "langchain_openai.chat_models",
        "langchain_openai.embeddings",
        "langgraph_sdk",
        "langsmith.types",
        "openai.types",
        "openai.types.responses",
    }
)


def delay_imports() -> None:
    """Run a package's code when one of its names is first used, not when it is imported."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in _PACKAGES else None
        if spec and spec.loader:
            spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader, self._lock, self._is_running = loader, RLock(), False

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _LateModule

    def look_up(self, module: ModuleType, name: str) -> Any:
        """Return an attribute after running the package's code, or importing its submodule."""
        with self._lock:
            if find_spec(f"{module.__name__}.{name}"):
                return import_module(f"{module.__name__}.{name}")
            if not self._is_running:
                self._is_running = True
                self._loader.exec_module(module)
                module.__class__ = ModuleType
        return object.__getattribute__(module, name)


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        loader: _LateLoader = self.__spec__.loader  # type: ignore[union-attr, assignment]
        return loader.look_up(self, name)
