from typing import NoReturn

from contend.models.providers.registry import Options, Provider


def provider(_: str) -> Provider:
    return Provider(open=_refuse, check=_accept, is_free=True, takes_tools=lambda _: False)


async def _accept(_: list[str]) -> list[str]:
    return []


def _refuse(name: str, _: Options) -> NoReturn:
    raise AssertionError(f"a person is asked, not opened: {name}")
