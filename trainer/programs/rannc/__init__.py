"""RaNNC's example: a BERT that is divided among the GPUs of a machine.

Three keys of its models, after Megatron-LM:

- ``megatron_residual_connection``: attention and feed-forward part read layer-normed input, and the
  residual is taken before the norm. No parameter is added: each norm keeps its name and is applied
  where its output is read next, so that the norm of the embeddings feeds the first attention, and
  the norm of the last layer is the final one. RaNNC's model has no final norm.
- ``scale_query_key``: query and key are each multiplied by (size d of a head)^-1/4, instead of their
  product by d^-1/2; equal but for rounding, and without overflow in 16 bits. RaNNC divides each by
  sqrt(n sqrt(d)), n being the layer's number from 1, and multiplies the scores by n: q k / (n sqrt(d))
  times n is the same q k / sqrt(d).
- ``deep_weight_init``: the weights of the two projections that end in the residual start with the
  standard deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
"""
