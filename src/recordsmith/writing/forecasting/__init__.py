"""Forecasts how large a dataset becomes, before packing it.

`stored_sample` stores a sample in each variant, `fidelity` compares pixels, and `forecast`
extrapolates sizes.
"""

from recordsmith.writing.forecasting.forecast import forecast
from recordsmith.writing.forecasting.forecast_report import ForecastReport, VariantForecast

__all__ = ["ForecastReport", "VariantForecast", "forecast"]
