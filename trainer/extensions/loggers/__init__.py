"""Logs of other packages: TensorBoard, Weights & Biases, MLPerf's."""
