"""Real data for the reproductions, read from a folder; where there is none, a documented stand-in of the same size.

Loaders take the folder as an argument or from the environment variable VEIL_DATA. Nothing is downloaded.
"""

from __future__ import annotations

from veil.datasets.catalogue import FILES, DataFile, check_files
from veil.datasets.counts import Counts, Emoji, emoji_uses, kosarak_clicks, retail_sales, zipf_people
from veil.datasets.folder import data_folder
from veil.datasets.numbers import (
    Numbers,
    beta_numbers,
    beta_people,
    bimodal_numbers,
    flight_times,
    income,
    uniform_numbers,
    wages,
)
from veil.datasets.records import Records, adult, us_census
from veil.datasets.strings import Strings, exponential_bits, first_names, web_words
from veil.datasets.tables import Census, Tabular, census_like, online_retail
from veil.datasets.transactions import (
    Transactions,
    kosarak_sets,
    online_invoices,
    pos_baskets,
    retail_baskets,
    short_kosarak_sets,
    synthetic_baskets,
    webview_clicks,
)
from veil.tools.shares import proportional

__all__ = [
    "FILES",
    "Census",
    "Counts",
    "DataFile",
    "Emoji",
    "Numbers",
    "Records",
    "Strings",
    "Tabular",
    "Transactions",
    "adult",
    "beta_numbers",
    "beta_people",
    "bimodal_numbers",
    "census_like",
    "check_files",
    "data_folder",
    "emoji_uses",
    "exponential_bits",
    "first_names",
    "flight_times",
    "income",
    "kosarak_clicks",
    "kosarak_sets",
    "online_invoices",
    "online_retail",
    "pos_baskets",
    "proportional",
    "retail_baskets",
    "retail_sales",
    "short_kosarak_sets",
    "synthetic_baskets",
    "uniform_numbers",
    "us_census",
    "wages",
    "web_words",
    "webview_clicks",
    "zipf_people",
]
