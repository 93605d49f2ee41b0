"""Stand-in for the function that ends a graph in lazy mode."""

from recording import record

from habana_frameworks.torch.utils.internal import is_lazy


def mark_step(device_str: str = "", sync: bool = False) -> None:
    """Run the collected operations. Outside lazy mode the real function does nothing. Here it is an error."""
    if not is_lazy():
        raise RuntimeError("mark_step: of lazy mode only, and PT_HPU_LAZY_MODE is 0")
    record(f"mark_step({'sync=True' if sync else ''})")
