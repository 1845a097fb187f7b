"""The exceptions of labkit: a leaf that everything may import.

Each message says what happened, what was expected, what came, and the fix, in one line. Each class also derives
from the builtin that a caller would catch anyway.
"""


class LabkitError(Exception):
    """Base of every error that labkit raises on purpose; the command line turns it into one line and exit code 2."""


class LengthsError(LabkitError, ValueError):
    """Sequence lengths (an array, a file, a table) that cannot be used as they are."""


class LengthsWarning(UserWarning):
    """Lengths that can be used, and of which something should be known; the command line says it in one line."""


class EdgesError(LabkitError, ValueError):
    """Bucket edges or widths that break the rules: strictly increasing integers >= 1, widths within their edges."""


class PolicyError(LabkitError, ValueError):
    """A field of a ``BatchPolicy`` that its strategy cannot work with, alone or on the lengths at hand."""


class ShapeError(LabkitError, ValueError):
    """Arrays whose shapes or offsets do not fit together."""


class ConfigError(LabkitError, ValueError):
    """A tuned configuration that is broken, of a future version, or not ours."""


class DataFileError(LabkitError, ValueError):
    """A file or folder that is missing, unreadable, or of a kind that labkit does not read."""


class NotebookError(LabkitError, ValueError):
    """A notebook that cannot be run as asked: unknown or ill-typed parameters, no parameters cell."""


class NotebookRunError(LabkitError, RuntimeError):
    """A cell of a notebook raised while it ran; the message names the cell and the error."""


class MissingPackageError(LabkitError, ImportError):
    """An optional package that is needed here is not installed; the message carries the install line."""


class KernelCompileError(LabkitError, RuntimeError):
    """CUDA source that a compiler refuses.

    Attributes:
        log: the compiler's whole log, with the lines of the source.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class KernelArgumentError(LabkitError, TypeError):
    """What was passed to a kernel is not what its parameters say: dtype, stride, device, a Python number."""


class KernelLaunchError(LabkitError, ValueError):
    """A launch that no device would accept (grid, block, shared memory), or that could not be carried out."""


class PtxError(LabkitError, RuntimeError):
    """A PTX program that does something wrong while it runs on the CPU, or that the PTX runner cannot run."""


class PtxUnsupportedError(PtxError):
    """A PTX program that the PTX runner cannot run: it uses what the runner does not know. Nothing is said of it."""


class GpuError(LabkitError, ValueError):
    """A GPU that the cost model does not know, or that cannot compute what was asked."""


class CostError(LabkitError, ValueError):
    """A step whose cost is not what the cost model can describe: the message names the op."""


class DeviceError(LabkitError, RuntimeError):
    """A device, its driver or its gauges, which are not there or cannot do what is asked of them."""


class CompileError(LabkitError, RuntimeError):
    """torch.compile compiled nothing, or gave up: what would run, and be measured, is eager."""
