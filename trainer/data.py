"""What there is to train on, a dataset or random examples, and the order in which training sees it.

The toolkit has all of it, without PyTorch: verification, decoding, generation, order. Batches of tensors
are made of it in ``trainer.loader``.
"""

from bertdata.generated_data import generated_data
from bertdata.opening import Data, open_data
from bertdata.ordering import Order, Piece, Position, numbers

__all__ = ["Data", "Order", "Piece", "Position", "generated_data", "numbers", "open_data"]
