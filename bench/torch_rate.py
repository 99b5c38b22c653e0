"""Shared code of the peers in PyTorch."""
import time


def median_rate(step, data, batch, warm_steps, steps, rounds):
    """Examples/s: the median of `rounds` times `steps` calls of step(*batch), after `warm_steps` of them."""
    for i in range(warm_steps):
        step(*data[i % len(data)])
    rates = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for i in range(steps):
            step(*data[i % len(data)])
        rates.append(steps * batch / (time.perf_counter() - begun))
    return float(f"{sorted(rates)[rounds // 2]:.4g}")
