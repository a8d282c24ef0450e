"""What authors of resamplings import: see docs/contributing/extending.md."""

from ckcv_ray.core.draws import Draws as Draws
from ckcv_ray.core.options import Option as Option
from ckcv_ray.core.options import option as option
from ckcv_ray.core.resampling.base import FoldSize as FoldSize
from ckcv_ray.core.resampling.base import Resampling as Resampling
from ckcv_ray.core.resampling.base import Split as Split
from ckcv_ray.core.resampling.base import Units as Units
from ckcv_ray.core.resampling.parse import register_resampling as register_resampling
