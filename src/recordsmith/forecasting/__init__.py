"""Forecast how large a dataset becomes and how fast it loads, before packing it.

`variants` lists the ways to store images, `measuring` stores a sample in each of them, `fidelity`
compares pixels, `estimation` extrapolates sizes, `speed` measures encoding and loading, `forecast`
combines these, and `plot` and `forecast_page` draw the `forecast_report`.
"""

from recordsmith.forecasting.forecast import forecast
from recordsmith.forecasting.forecast_report import ForecastReport, VariantForecast
from recordsmith.forecasting.plot import save_plot

__all__ = ["ForecastReport", "VariantForecast", "forecast", "save_plot"]
