"""Delays the import of large packages until one of their names is used."""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
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
# The name under which a package's code is imported, so that Python's locks for imports apply.
_CODE = "__late_code__"


def delay_imports() -> None:
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.endswith(f".{_CODE}"):
            return ModuleSpec(name, _CodeLoader(sys.modules[name.removesuffix(f".{_CODE}")]))
        spec = PathFinder.find_spec(name, path) if name in _PACKAGES else None
        if spec and spec.loader:
            spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _LateModule


class _CodeLoader(Loader):
    def __init__(self, package: ModuleType) -> None:
        self._package = package

    def exec_module(self, _: ModuleType) -> None:
        late: _LateLoader = self._package.__spec__.loader  # type: ignore[union-attr, assignment]
        late.loader.exec_module(self._package)
        self._package.__class__ = ModuleType


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        submodule = f"{self.__name__}.{name}"
        # Unlike import_module, these let two threads import modules that need each other.
        if find_spec(submodule):
            __import__(submodule)
            return sys.modules[submodule]
        __import__(f"{self.__name__}.{_CODE}")
        return object.__getattribute__(self, name)
