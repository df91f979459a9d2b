"""Tests in a browser, apart from `make test`: JupyterLab and Chromium are large. `make test-browser` runs them."""
