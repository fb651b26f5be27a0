"""Public data for the experiments, read from a folder; without one, a documented stand-in of the same size.

Loaders take the folder as an argument or from the environment variable VEIL_DATA. Nothing is downloaded.
"""

from __future__ import annotations

from veil.tools.numbers import proportional
from veil_papers.datasets.counts import (
    Counts,
    Emoji,
    Strings,
    emoji_uses,
    exponential_bits,
    first_names,
    kosarak_clicks,
    retail_sales,
    web_words,
    zipf_people,
)
from veil_papers.datasets.files import FILES, DataFile, check_files, data_folder
from veil_papers.datasets.numbers import (
    Numbers,
    beta_numbers,
    beta_people,
    bimodal_numbers,
    flight_times,
    income,
    uniform_numbers,
    wages,
)
from veil_papers.datasets.records import Records, adult, us_census
from veil_papers.datasets.tables import Census, Tabular, census_like, online_retail
from veil_papers.datasets.transactions import (
    Transactions,
    kosarak_sets,
    online_invoices,
    pos_baskets,
    retail_baskets,
    short_kosarak_sets,
    synthetic_baskets,
    webview_clicks,
)

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
