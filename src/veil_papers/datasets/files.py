"""The data folder: the public files in it, with origins, licences and checksums, and the functions that read them.

docs/data.md is written from `FILES`. The checksums are those of the files that the published figures were made with.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from veil.errors import InputError
from veil.tools.numbers import is_int

_UNSTATED = "none stated; published for research"
_FIMI = "Frequent Itemset Mining Dataset Repository, http://fimi.uantwerpen.be/data"
_BLUE_MARTINI = "KDD Cup 2000, Blue Martini Software (Zheng, Kohavi and Mason 2001)"


@dataclass(frozen=True)
class DataFile:
    """A file of the data folder."""

    name: str
    holds: str
    """Rows and columns, in words."""
    origin: str
    licence: str
    sha256: str


FILES = (
    DataFile(
        "kosarak_first100k.parquet",
        "the first 100,000 of 990,002 visits to a Hungarian news site, as sets of pages; `items: list<uint16>`",
        f"{_FIMI}: kosarak.dat (F. Bodon)",
        _UNSTATED,
        "80df2c6fb9e0791a6e48c9348515b076d782c2b3ab6a326dd242abcb1a106fbe",
    ),
    DataFile(
        "kosarak_size_le5_item_ge25.parquet",
        "all 505,217 visits with at most 5 pages, each of which occurs at least 25 times; `items: list<uint16>`",
        f"{_FIMI}: kosarak.dat (F. Bodon)",
        _UNSTATED,
        "6f5b91e9231c271eee18a76a7f630e2e355253281272e699dc327f54145f330c",
    ),
    DataFile(
        "retail.parquet",
        "88,162 baskets of a Belgian supermarket, 16,470 products; `items: list<uint16>`",
        f"{_FIMI}: retail.dat (T. Brijs)",
        _UNSTATED,
        "e50cfce9770d2b5fa6b98c045cac6147d2180137daf6b5bc36d4e42220737be7",
    ),
    DataFile(
        "bms_pos_first100k.parquet",
        "the first 100,000 of 515,597 baskets of an electronics shop, by category of product; `items: list<uint16>`",
        f"{_BLUE_MARTINI}: BMS-POS",
        _UNSTATED,
        "6f7e8cfbfde04d25b857ac17a2b7dfb7d36dca88e00f9f4654e933d1fe5f49ad",
    ),
    DataFile(
        "bms_webview2.parquet",
        "77,512 visits to an online shop, 3,340 products looked at; `items: list<uint32>`",
        f"{_BLUE_MARTINI}: BMS-WebView-2",
        _UNSTATED,
        "c780848098282f21f09412860964e09120bb2f179540af5d95d50f9743486843",
    ),
    DataFile(
        "online_retail_uci.parquet",
        "541,909 order lines of a British online shop; `invoice`, `stock_code`, `quantity`, `unit_price`, "
        "`customer_id`, `invoice_time`, `country`",
        "UCI Machine Learning Repository, Online Retail (D. Chen), https://doi.org/10.24432/C5BW33",
        "CC BY 4.0",
        "4f175f972e464062937975aa1f304273d1f55f69079626f13d40a4f8793829fe",
    ),
    DataFile(
        "adult_uci.parquet",
        "48,842 people of the US census of 1994; the columns of the original with underscores, and `split`",
        "UCI Machine Learning Repository, Adult (B. Becker and R. Kohavi), https://doi.org/10.24432/C5XW20",
        "CC BY 4.0",
        "dcac1852c31a9a8e45240f5f1e9ce662dca14ddb83cfa9816bab0d3490e00a19",
    ),
    DataFile(
        "acs_nist2019_excerpts.parquet",
        "44,163 people of the American Community Survey of 2019; the columns of the original, and `excerpt`",
        "NIST, Diverse Community Excerpts of 2019, https://github.com/usnistgov/SDNist",
        "US public domain",
        "25141d832e24aa85a31f7d96cb63060a885a2ad41e1b5984bf3182af0e2d1aab",
    ),
    DataFile(
        "cps_taxunits_taxcalc.parquet",
        "280,005 tax units of the Current Population Survey, 2012 to 2014; `wages_head` and others, in dollars",
        "TaxData and Tax-Calculator, cps.csv.gz, https://github.com/PSLmodels/Tax-Calculator",
        "CC0",
        "1a96cf3ca607fed2990a619100c242d1140745fe55078636e1ae329003e335f6",
    ),
    DataFile(
        "dpbench_histograms.npz",
        "public histograms; of these `d1_INCOME_n4096`, yearly incomes of 20,787,122 people in 4,096 bins",
        "DPBench (Hay et al. 2016), INCOME.n4096.npy of https://github.com/dpcomp-org/dpcomp_core; incomes from IPUMS",
        "none stated",
        "74363500695065156676869c5277c1cb42cb75b82a98b013c1e7a447693f5c53",
    ),
    DataFile(
        "us_flights2001_deptime_delay_joint.parquet",
        "3,000,000 flights in the US in 2001; `dep_minute_of_day`, `delay_min`, `count`",
        "US Bureau of Transportation Statistics, on-time performance, https://www.transtats.bts.gov",
        "US public domain",
        "38b211b2ebd414f010a9e38d9677dd7809c15f88ef00f2564fca46591775915d",
    ),
    DataFile(
        "emoji_emojitracker.parquet",
        "uses of 845 emoji on Twitter at three dates; `id`, `char`, `name`, `category`, `count_2020_06` and others",
        "https://emojitracker.com (M. Rothenberg, later Emojipedia); categories of Unicode",
        "none stated for the counts",
        "5dc4211c13df11e9992db52799f49b4f3832db3936439b53d0b1541485cc9bff",
    ),
    DataFile(
        "us_ssa_names.parquet",
        "106,695 pairs of first name and sex; `name`, `sex`, `count_1880_2016`, `count_2016`",
        "US Social Security Administration, https://www.ssa.gov/oact/babynames/limits.html",
        "US public domain",
        "d5b13c10336bc19ca0fd1420c308ecee16025424f61cde712dc5bc5a1446d9d2",
    ),
    DataFile(
        "google_web_unigrams_333k.parquet",
        "333,213 words of English web pages; `word`, `count`",
        "Google Web 1T (T. Brants and A. Franz 2006), as in count_1w.txt of https://norvig.com/ngrams",
        "none stated for the counts",
        "145fe240701f8ae79f08522df2a694921144c8eccbbb7a46c236c30fe77fae0a",
    ),
)
"""Every file that a loader of `veil_papers.datasets` reads."""

State = Literal["the same", "another", "missing"]


def check_files(folder: str | Path | None = None) -> dict[str, State]:
    """Compare the files of a data folder, by their checksums, with those that the published figures were made with.

    A file made anew from its origin is "another", although it may hold the same rows.
    """
    path = data_folder(folder)
    if path is None:
        raise InputError("folder: expected a folder with data; name it, or set VEIL_DATA")
    return {file.name: _compare(path / file.name, file.sha256) for file in FILES}


def _compare(path: Path, sha256: str) -> State:
    if not path.is_file():
        return "missing"
    return "the same" if hashlib.sha256(path.read_bytes()).hexdigest() == sha256 else "another"


# -- reading -----------------------------------------------------------------------------------------------------------


def data_folder(folder: str | Path | None = None) -> Path | None:
    """Return the data folder: the argument, else VEIL_DATA, else None."""
    name = folder or os.environ.get("VEIL_DATA")
    if not name:
        return None
    path = Path(name)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    return path


def data_file(folder: str | Path | None, name: str) -> Path | None:
    """Return the path of a file in the data folder, or None without a folder."""
    parent = data_folder(folder)
    if parent is None:
        return None
    path = parent / name
    if not path.is_file():
        raise InputError(f"there is no file {path}: docs/data.md says where it comes from")
    return path


def read_columns(path: Path, *names: str) -> dict[str, Any]:
    """Read columns of a Parquet file as Arrow arrays by name, with dictionaries decoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(names))
    columns = {name: table.column(name).combine_chunks() for name in names}
    return {name: col.dictionary_decode() if pa.types.is_dictionary(col.type) else col for name, col in columns.items()}


def check_integer(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int; refuse what is not an integer between `least` and `most`."""
    if not is_int(value) or value < least or (most is not None and value > most):
        limits = f"of at least {least:,}" if most is None else f"between {least:,} and {most:,}"
        raise InputError(f"{name}: expected an integer {limits}, got {value}")
    return int(value)
