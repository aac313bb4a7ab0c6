"""Samples or records to complete datasets: packed, reshaped, edited, salvaged or forecast.

All jobs publish through `building`: locks, notes of complete shards, names at the end.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "building.publishing": "existing_dataset",
        "building.shards": "ShardResult",
        "building.table_writing": (
            "PartResult PartWriter TableJob abandon_table begin_table finish_table "
            "job_folder write_table_part"
        ),
        "forecasting.forecast": "forecast",
        "layers.adding": "LayerReport LayersReport add_layer list_layers remove_layer",
        "packing.images": "is_requested",
        "packing.pack": "finish pack plan run",
        "packing.pack_plan": "PackPlan read_results",
        "packing.pack_report": "PackReport",
        "reshaping.append": "AppendReport append",
        "reshaping.edits": "Edits",
        "reshaping.in_place": "EditReport edit_in_place",
        "reshaping.recovery": "HistoryReport RecoverReport history recover",
        "reshaping.reshard": "ReshardReport edit reshard",
        "reshaping.salvage": "SalvageReport SalvagedShard salvage",
    },
)
