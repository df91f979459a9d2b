"""The operations of the service, one class per subject; `anisoflight.Client` is all of them."""
