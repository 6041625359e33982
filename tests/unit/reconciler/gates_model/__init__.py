"""A random test of release gates. Two gatekeepers and the reconcilers of gates carry out the product's code in
simulated time, and an oracle says minute by minute what has to come out."""
