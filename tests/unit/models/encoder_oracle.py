#!/usr/bin/env python3
"""Writes encoder-*.safetensors: weights of small models of the kind "encoder", texts with lengths and classes, and what
PyTorch computes of them: loss, gradients and probabilities of the classes; loss of the tokens that an evaluation hides;
the mean state of each text. usage: cd tests/unit/models && /usr/bin/python3 encoder_oracle.py (python3-torch)"""
import torch
import torch.nn.functional as F

from gpt_oracle import C, HEADS, V, shapes, states, weights, write

N, T, CLASSES = 4, 20, 3
MASK = V - 1
BITS = (1 << 64) - 1


def fixed(number):
    """The number-th fixed random number of src/models/masks.c."""
    number = (number + 1) * 0x9E3779B97F4A7C15 & BITS
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & BITS
    number = (number ^ number >> 27) * 0x94D049BB133111EB & BITS
    return ((number ^ number >> 31) >> 40) * 2.0 ** -24


def hide(tokens):
    """The tokens as an evaluation hides them, and the chosen places."""
    count = max(1, int(0.15 * T + 0.5))
    places = sorted(range(T), key=lambda place: -fixed(place))[:count]
    hidden = tokens.clone()
    for i, place in enumerate(places):
        kind, any_token = fixed((1 << 15) + i), int(fixed((1 << 16) + i) * V)
        if kind < 0.8:
            hidden[:, place] = MASK
        elif kind < 0.9:
            hidden[:, place] = any_token
    return hidden, places


def main():
    for kind, new in (("classic", False), ("new", True)):
        generator = torch.Generator().manual_seed(18)
        its = {name: shape for name, shape in shapes(new, HEADS, T).items() if name != "lm_head.weight"}
        w = weights(its | {"logits/kernel": (C, CLASSES), "logits/bias": (CLASSES,)}, generator)
        exact = {name: value.double().requires_grad_() for name, value in w.items()}
        tokens = torch.randint(0, MASK, (N, T), generator=generator)
        lengths, classes = torch.tensor([T, 7, 1, 0]), torch.tensor([2, 0, 1, 2])
        inside = torch.arange(T)[None] < lengths[:, None]
        x = states(exact, tokens, new, HEADS, inside[:, None, None])
        means = (x * inside[..., None]).sum(1) / lengths.clamp(min=1)[:, None]
        logits = means @ exact["logits/kernel"] + exact["logits/bias"]
        loss = F.cross_entropy(logits, classes)
        loss.backward()
        everything = torch.ones(1, 1, 1, T, dtype=torch.bool)
        hidden, places = hide(tokens)
        guesses = states(exact, hidden, new, HEADS, everything)[:, places] @ exact["wte.weight"].T
        results = {"tokens": tokens, "lengths": lengths, "classes": classes, "loss": loss.detach().float().reshape(1),
                   "probabilities": logits.detach().softmax(-1).float(),
                   "hidden_loss": F.cross_entropy(guesses.reshape(-1, V), tokens[:, places].reshape(-1)).detach().float().reshape(1),
                   "hidden_right": (guesses.argmax(-1) == tokens[:, places]).float().mean().reshape(1),
                   "means": states(exact, tokens, new, HEADS, everything).mean(1).detach().float()}
        results |= {"gradient/" + name: value.grad.float() for name, value in exact.items()}
        write(f"encoder-{kind}.safetensors", w | results)


if __name__ == "__main__":
    main()
