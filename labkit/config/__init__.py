"""TunedConfig: the JSON between the lab and a training job. The only home of pydantic."""

from labkit.config.comparison import Comparison as Comparison
from labkit.config.tuned import TunedConfig as TunedConfig
