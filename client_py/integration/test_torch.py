"""Torch tensors go up from their own memory, whatever hangs on them; what is gone from `anisoflight.torch`."""

import numpy as np
import pytest
import torch

import anisoflight.torch
from anisoflight import BadRequestError, Client
from anisoflight.wire.intake import dataset_table


def test_tensors_go_up_and_come_back(client: Client) -> None:
    images = torch.rand(5, 3, 8, 8) * 2 - 1
    labels = torch.arange(5)
    address = dataset_table(images, labels)["image"].chunk(0).storage.flatten().buffers()[1].address
    assert address == images.data_ptr()
    for given in (images, images.clone().requires_grad_(), list(images), images.double()):
        client.put_dataset("torch", given, labels, replace=True, progress=False)
        stored = client.dataset("torch")
        torch.testing.assert_close(stored.to_torch(), images)
        np.testing.assert_array_equal(stored.labels, labels)
    client.put_dataset("torch", images.bfloat16(), replace=True, progress=False)
    torch.testing.assert_close(client.dataset("torch").to_torch(), images.bfloat16().float())


def test_what_is_gone_says_what_to_type_now() -> None:
    with pytest.raises(BadRequestError, match=r"torch\.schedule is gone since 0\.1: few\(denoiser, nfe=…\)"):
        from anisoflight.torch import schedule  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(anisoflight.torch, "schedules")
