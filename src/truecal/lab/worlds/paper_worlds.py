"""The ten worlds that Roelofs et al. fitted to real networks, as printed (rounded) in their Tables 1 and 2."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from truecal.errors import InputError
from truecal.lab.worlds.curves import GLM, Function
from truecal.lab.worlds.score_distributions import Beta
from truecal.lab.worlds.world import World


@dataclass(frozen=True)
class PrintedWorld:
    """A Beta as in Table 1, and the row of Table 2 with the lowest AIC."""

    alpha: float
    beta: float
    link: Function
    transform: Function
    b0: float
    b1: float

    @property
    def world(self) -> World:
        return World(Beta(self.alpha, self.beta), GLM(self.link, self.transform, self.b0, self.b1))


PRINTED: Mapping[str, PrintedWorld] = MappingProxyType(
    {
        "resnet110_c10": PrintedWorld(2.7752, 0.0478, "logflip", "logflip", -0.24, 0.30),
        "resnet110_SD_c10": PrintedWorld(2.1714, 0.0394, "logit", "logflip", -0.27, -0.35),
        "resnet_wide32_c10": PrintedWorld(2.3806, 0.0379, "logit", "logit", 0.00, 0.26),
        "densenet40_c10": PrintedWorld(1.9824, 0.0397, "logit", "logflip", 0.00, -0.26),
        "resnet110_c100": PrintedWorld(1.1823, 0.1081, "logflip", "logflip", -0.11, 0.28),
        "resnet110_SD_c100": PrintedWorld(1.1233, 0.1147, "logit", "logit", -0.88, 0.49),
        "resnet_wide32_c100": PrintedWorld(1.0611, 0.0650, "logflip", "logflip", -0.13, 0.21),
        "densenet40_c100": PrintedWorld(1.0805, 0.0808, "logit", "logit", -0.97, 0.34),
        "resnet152_imgnet": PrintedWorld(1.1359, 0.2069, "logflip", "logflip", -0.12, 0.58),
        "densenet161_imgnet": PrintedWorld(1.1928, 0.2206, "log", "log", -0.03, 1.27),
    }
)

DATASETS = MappingProxyType({"c10": "CIFAR-10", "c100": "CIFAR-100", "imgnet": "ImageNet"})

# Peng et al. (section 4.1): the densest region of the scores, chosen by eye for each dataset.
KNN_REGIONS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"CIFAR-10": (0.998, 1.0), "CIFAR-100": (0.99, 1.0), "ImageNet": (0.98, 1.0)}
)


class _Worlds(Mapping[str, World]):
    """Worlds by name; an unknown name is answered with the known ones."""

    def __init__(self, worlds: dict[str, World]) -> None:
        self._worlds = worlds

    def __getitem__(self, name: str) -> World:
        if name not in self._worlds:
            raise InputError(f"unknown world {name!r}: use one of {', '.join(self._worlds)}")
        return self._worlds[name]

    def __contains__(self, name: object) -> bool:
        return name in self._worlds

    def __iter__(self) -> Iterator[str]:
        return iter(self._worlds)

    def __len__(self) -> int:
        return len(self._worlds)


PAPER_WORLDS: Mapping[str, World] = _Worlds({name: printed.world for name, printed in PRINTED.items()})


def dataset_of(world_name: str) -> str:
    """CIFAR-10, CIFAR-100 or ImageNet.

    >>> dataset_of("resnet110_SD_c100")
    'CIFAR-100'
    """
    name = world_name.rsplit("_", 1)[-1]
    if name not in DATASETS:
        raise InputError(f"{world_name!r} is not the name of a world of the papers, such as 'resnet110_SD_c100'")
    return DATASETS[name]
