#!/bin/sh
# Runs in the container that trixie.py makes, which has Python and the source in /src, nothing else:
# no git, which tests/house/test_checkout.py needs, and no uv where tests/release looks for it.
set -eu
cd /src
python3 -m venv /tools
/tools/bin/pip install --quiet --no-deps --require-hashes -r image/build-tools.txt
export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never UV_NO_CACHE=1 UV_LINK_MODE=copy
export UV_PYTHON=/usr/bin/python3 CI=1
/tools/bin/uv sync --frozen --quiet
.venv/bin/python --version
exec .venv/bin/pytest -q -m "not controlplane" --ignore=tests/deploy --ignore=tests/e2e \
    --ignore=tests/release \
    --ignore=tests/house/test_checkout.py \
    --numprocesses 2 --dist loadfile "$@"
