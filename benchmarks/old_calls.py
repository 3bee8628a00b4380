"""Calls of MXNet's scripts on photographs: MXNet 1.9.1 beside `iterators.compat.mxnet`, in turns.

``python benchmarks/old_calls.py PREFIX PYTHON`` reads PREFIX.rec and PREFIX.idx, a pack of JPEG
images, and runs the same lines here and with PYTHON, an interpreter that has MXNet 1.9.1 and NumPy
1.23; only the import differs.  Samples per second of processor time of all threads, one turn of
each after the other: medians of the rounds, and the lowest and highest ratio of a round.
"""

import statistics
import subprocess
import sys
import time

ROUNDS, SECONDS = 7, 3.0


def records(mx, prefix):
    """Read and unpack."""
    reader = mx.recordio.MXIndexedRecordIO(prefix + ".idx", prefix + ".rec", "r")
    for key in reader.keys:
        mx.recordio.unpack(reader.read_idx(key))
        yield


def decoded(mx, prefix):
    """Read, unpack and decode, as loaders of faces do."""
    reader = mx.recordio.MXIndexedRecordIO(prefix + ".idx", prefix + ".rec", "r")
    for key in reader.keys:
        mx.image.imdecode(mx.recordio.unpack(reader.read_idx(key))[1]).asnumpy()
        yield


def gluon(mx, prefix):
    """Gluon's data set with two transforms."""
    vision = mx.gluon.data.vision
    steps = vision.transforms.Compose([vision.transforms.Resize(224), vision.transforms.ToTensor()])
    data = vision.ImageRecordDataset(prefix + ".rec").transform_first(steps)
    for index in range(len(data)):
        data[index][0].asnumpy()
        yield


CASES = {"records": records, "decoded": decoded, "gluon": gluon}


def turn(name, prefix, seconds):
    """Return the samples per second of processor time of this process."""
    if "mxnet" in sys.argv[1:2]:
        import mxnet as mx
    else:
        from iterators.compat import mxnet as mx
    case, count, started = CASES[name], 0, None
    for _ in case(mx, prefix):  # once for caches and libraries
        pass
    started = time.process_time()
    while time.process_time() - started < seconds:
        for _ in case(mx, prefix):
            count += 1
    return count / (time.process_time() - started)


def main(prefix, python):
    """Print a line for each case."""
    for name, case in CASES.items():
        rates = {"mxnet": [], "here": []}
        for _ in range(ROUNDS):
            for side, interpreter in (("mxnet", python), ("here", sys.executable)):
                command = [interpreter, __file__, side, name, prefix, str(SECONDS)]
                rates[side].append(float(subprocess.check_output(command, text=True)))
        old, new = (statistics.median(rates[side]) for side in ("mxnet", "here"))
        ratios = sorted(b / a for a, b in zip(*rates.values(), strict=True))
        print(
            f"{case.__doc__} MXNet {old:,.0f}, here {new:,.0f}: {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {ROUNDS} rounds)"
        )


if __name__ == "__main__":
    if sys.argv[1] in ("mxnet", "here"):
        print(turn(sys.argv[2], sys.argv[3], float(sys.argv[4])))
    else:
        main(*sys.argv[1:])
