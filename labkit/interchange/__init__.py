"""Bucket edges of other tools: Lhotse and NeMo, tf.data, CUDA graph capture sizes. Read, written, their rules kept."""

from labkit.interchange.files import read_edges as read_edges
from labkit.interchange.files import write_edges as write_edges
from labkit.interchange.foreign import EdgeFormat as EdgeFormat
from labkit.interchange.foreign import ForeignEdges as ForeignEdges
