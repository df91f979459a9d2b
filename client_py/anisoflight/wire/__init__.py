"""What goes over the wire: calls and their streams, and tables of Arrow tensors both ways.

It knows requests and rows; what they mean is the business of `anisoflight.operations`.
"""
