"""The operations on models."""

from typing import Any

import pandas as pd

from ..wire.calls import Connection
from ..wire.listing import frame_of
from . import documented


class Models(Connection):
    """Models: served from folders, uploaded, or made as Gaussian mixtures."""

    def models(self) -> pd.DataFrame:
        """The models by name. A notebook shows the main columns."""
        shown = ("model_type", "img_resolution", "img_channels", "label_dim", "parameters")
        return frame_of(self.call("ListModels")["models"], *shown)

    def describe_model(self, model: str) -> dict[str, Any]:
        """A model with its whole configuration."""
        return self.call("DescribeModel", model=model)

    def load_model(self, name: str, *, precision: str | None = None) -> dict[str, Any]:
        """Serve a model folder that was added to the server's models folder after its start.

        precision is float32, tf32 or bfloat16; by default that of the loaded model, else the server's setting.
        """
        return self.call("LoadModel", name=name, precision=precision)

    def unload_model(self, model: str) -> None:
        """Stop serving a model; its folder stays."""
        self.call("UnloadModel", model=model)

    def delete_model(self, model: str) -> None:
        self.call("DeleteModel", model=model)

    def put_network(
        self,
        name: str,
        module: Any,
        *,
        scheduler: Any = None,
        prediction: str | None = None,
        replace: bool = False,
        check: bool = True,
        progress: bool = True,
        **how: Any,
    ) -> dict[str, Any]:
        """Serve a denoiser of PyTorch: export it, send it, and compare the server with torch on random inputs.

        scheduler is the one of diffusers that it was trained with. Without it, `prediction` is edm, vp, ve, epsilon, v,
        sample or flow, or `scheduler` a config.json's section parametrization. A network of diffusers needs one of
        them; others default to edm. `how` is passed to `anisoflight.torch.export`: size, channels, labels, conditions,
        mean, scale, … A model whose F or D differs by more than 1e-4 from torch is removed; with `replace` the older
        one stays until the new one has been compared. Needs anisoflight[torch]; see docs/networks.md.
        """
        from ..torch.service import put_network

        return put_network(self, name, module, scheduler, prediction, replace, check, progress, **how)

    def get_network(self, name: str, module: Any) -> Any:
        """Fill the module that was put, or one like it, with the model's weights; returns the module. A module that
        lacks or adds a tensor is refused and not changed.
        """
        from ..torch.service import get_network

        return get_network(self, name, module)

    @documented("MakeModel")
    def make_mixture(
        self, name: str, dataset: str | None = None, *, progress: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Make a Gaussian mixture, whose score is exact, and serve it as a model.

        It is made from the classes of a data set, with as much of their covariance as `covariance` selects, or from
        your own laws: means [n, d] and covariances [n, d, d] of images of `shape`, with weights [n] and class labels
        [n].

        >>> cov = [[[0.04, 0.01], [0.01, 0.02]], [[0.01, 0], [0, 0.03]]]
        >>> client.make_mixture("plane", means=[[0.5, 0], [-0.5, 0.25]], covariances=cov, replace=True)["model_type"]
        'Mixture'
        """
        return self.call("MakeModel", show="mixture" if progress else None, name=name, dataset=dataset, **options)
