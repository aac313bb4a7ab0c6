"""JAX: a classifier of flowers, which can stop and resume mid-epoch.

    python examples/training/jax_classifier.py
    python examples/training/jax_classifier.py --stop-after 55
    python examples/training/jax_classifier.py --resume

With `--grain`, a grain pipeline provides the images and reads recordsmith's examples by position.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from data import NAMES, options, packed_flowers
from jax import lax, random

import recordsmith as rs
import recordsmith.jax

BATCH_SIZE = 20
optimizer = optax.adamw(4e-3)


def make_params(key: jax.Array) -> Any:
    """Three convolutions of 3 by 3 and a dense layer."""
    shapes = [(3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 32, 64), (64, len(NAMES))]
    keys = random.split(key, len(shapes))
    init = jax.nn.initializers.he_normal()
    return [
        {"w": init(key, shape), "scale": jnp.ones(shape[-1]), "b": jnp.zeros(shape[-1])}
        for key, shape in zip(keys, shapes, strict=True)
    ]


def logits(params: Any, pixels: jax.Array) -> jax.Array:
    x = (pixels.astype(jnp.float32) / 255 - 0.4) / 0.25
    for layer in params[:-1]:
        x = lax.conv_general_dilated(
            x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.standardize(x, axis=(1, 2)) * layer["scale"] + layer["b"]
        x = lax.reduce_window(
            jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        )
    return x.mean((1, 2)) @ params[-1]["w"] + params[-1]["b"]


def mean_loss(params: Any, batch: dict[str, jax.Array]) -> jax.Array:
    scores = logits(params, batch["image"])
    return optax.softmax_cross_entropy_with_integer_labels(scores, batch["label"]).mean()


@jax.jit
def train_step(params: Any, state: Any, batch: dict[str, jax.Array]) -> Any:
    loss, gradients = jax.value_and_grad(mean_loss)(params, batch)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def right_count(params: Any, batch: dict[str, jax.Array]) -> jax.Array:
    return (logits(params, batch["image"]).argmax(1) == batch["label"]).sum()


def with_loader(train: rs.Dataset, epochs: int) -> Any:
    """Batches of recordsmith's loader: its order, crops and threads."""
    crop = rs.Image("image/encoded", 48, "random-crop", crop_area=(0.4, 1), flip="horizontal")
    loader = rs.Loader(
        train,
        {"image": crop, "label": "image/class/label"},
        batch_size=BATCH_SIZE,
        shuffle=True,
        seed=0,
        epochs=epochs,
        last_batch="drop",
    )
    stream = recordsmith.jax.batches(loader)
    return stream, stream.state_dict, stream.load_state_dict


def with_grain(train: rs.Dataset, epochs: int) -> Any:
    """Batches of grain: its order and threads; crops are drawn by its generators."""
    import grain

    from recordsmith.grain import examples

    def crop_and_flip(example: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        top, left = generator.integers(17, size=2)
        pixels = example["image"][top : top + 48, left : left + 48]
        return {**example, "image": pixels[:, :: generator.choice((1, -1))]}

    source = examples(train, {"image": rs.Image("image/encoded", 64), "label": "image/class/label"})
    stream = iter(
        grain.MapDataset.source(source)
        .seed(0)
        .shuffle()
        .random_map(crop_and_flip)
        .batch(BATCH_SIZE, drop_remainder=True)
        .repeat(epochs)
        .to_iter_dataset()
    )
    return stream, stream.get_state, stream.set_state


def main() -> None:
    parser = options(__doc__, images=300, epochs=12, resumes=True)
    parser.add_argument("--grain", action="store_true", help="read through grain")
    args = parser.parse_args()

    dataset = packed_flowers(args.folder, args.images)
    train, validation = (rs.open(dataset, split=name) for name in ("train", "validation"))
    stream, state, set_state = (with_grain if args.grain else with_loader)(train, args.epochs)
    whole = rs.Image("image/encoded", 48, "center-crop")
    unseen = rs.Loader(validation, {"image": whole, "label": "image/class/label"}, batch_size=45)
    step_count = len(train) // BATCH_SIZE  # of an epoch

    params = make_params(random.key(0))
    opt_state = optimizer.init(params)
    losses: list[float] = []
    checkpoint = args.folder / "jax_classifier.npz"
    if args.resume:
        (params, opt_state), reading, losses = load(checkpoint, (params, opt_state))
        set_state(reading)

    for batch in stream:
        params, opt_state, loss = train_step(params, opt_state, batch)
        losses.append(loss)
        epoch, step = divmod(len(losses), step_count)
        if step == 0:
            right = sum(right_count(params, batch) for batch in recordsmith.jax.batches(unseen))
            mean = sum(map(float, losses[-step_count:])) / step_count
            print(f"epoch {epoch:2}  loss {mean:.4f}  accuracy {right / len(validation):.1%}")
        if len(losses) == args.stop_after:
            print(f"stopped after step {len(losses)}, in epoch {epoch + 1}")
            break
    save(checkpoint, (params, opt_state), state(), losses)


def save(path: Path, model: Any, reading: dict[str, Any], losses: list[float]) -> None:
    """Save model, optimizer, reading position and all losses so far."""
    np.savez(path, *jax.tree.leaves(model), reading=json.dumps(reading), losses=losses)


def load(path: Path, model: Any) -> tuple[Any, dict[str, Any], list[float]]:
    saved = np.load(path)
    leaves = [saved[f"arr_{number}"] for number in range(len(jax.tree.leaves(model)))]
    restored = jax.tree.unflatten(jax.tree.structure(model), leaves)
    return restored, json.loads(str(saved["reading"])), saved["losses"].tolist()


if __name__ == "__main__":
    main()
